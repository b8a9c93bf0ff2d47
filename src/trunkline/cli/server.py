"""Running an application in this process: sockets, the event loop, signals."""

import asyncio
import errno
import gc
import logging
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn

from trunkline.core.state import StorageError
from trunkline.telemetry.repeats import Repeats

if TYPE_CHECKING:
    from trunkline.app import Application

BACKLOG = 4096
GC_THRESHOLD = 20_000


def bind(listen: str, *, shared: bool = False, listening: bool = True) -> socket.socket:
    """Open the listening socket; `shared`: other processes may, too. Raises OSError, ValueError, OverflowError."""
    host, _, port = listen.rpartition(":")
    if not port.isascii() or not port.isdigit():
        raise ValueError("it is not HOST:PORT")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        opened.bind((host, int(port)))
        if listening:
            opened.listen(BACKLOG)
    except (OSError, ValueError, OverflowError):
        opened.close()
        raise
    return opened


class Server(uvicorn.Server):
    """Says when it listens; tells the application when it is going down."""

    def __init__(self, config: uvicorn.Config, application: "Application", ready: Callable[[], object]) -> None:
        super().__init__(config)
        self._application = application
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so, or why that cannot be."""
        try:
            await self._application.begin()
        except StorageError as error:
            sys.stderr.write(f"trunkline: {error}\n")
            self.should_exit = True
            return
        await super().startup(sockets)
        if self._application.watch is not None:
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._application.watch.ask)
        gc.collect()
        gc.freeze()  # what is here now stays: looking at it again and again costs a tenth of the time
        gc.set_threshold(GC_THRESHOLD)
        gc.enable()
        if not self.should_exit:
            self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - as uvicorn calls it
        """End in order, a second Ctrl-C at once; uvicorn's own lets the signal kill the process afterwards."""
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        """End when told to, and when the application has failed."""
        return self._application.failed or await super().on_tick(counter)

    @property
    def status(self) -> int:
        """Give the exit status: other than 0 when whoever keeps the process is to start it again."""
        return 0 if self.started and not self._application.failed else 1

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Fail readiness first, then let running answers end."""
        self._application.live.going_down = True
        for server in self.servers:
            server.close()
        await asyncio.sleep(0)  # connections taken just now are made, and told like the others
        await super().shutdown(sockets)


def run(application: "Application") -> int:
    """Serve until a signal or a failure; gives the exit status."""
    set_up_log()
    opened = bind_or_say(application.config.server.listen)
    if opened is None:
        return 1
    running = make_server(application, opened)
    running.run(sockets=[opened])
    return running.status


def bind_or_say(listen: str) -> socket.socket | None:
    """Open the listening socket, or say why that cannot be."""
    try:
        return bind(listen)
    except (OSError, ValueError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        hint = "; --listen names another" if isinstance(error, OSError) and error.errno == errno.EADDRINUSE else ""
        sys.stderr.write(f"trunkline: cannot listen on {listen}: {reason}{hint}\n")
        return None


def say_where(opened: socket.socket) -> None:
    """Say where clients find the gateway."""
    sys.stderr.write(f"trunkline: serving on http://{address(opened)}\n")
    sys.stderr.flush()


def address(opened: socket.socket) -> str:
    """Give the `HOST:PORT` of a socket."""
    host, port = opened.getsockname()[:2]
    return f"{f'[{host}]' if ':' in host else host}:{port}"


def set_up_log() -> None:
    """Log to standard error."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("trunkline").setLevel(logging.INFO)
    for handler in logging.getLogger().handlers:
        handler.addFilter(Repeats())


def make_server(application: "Application", opened: socket.socket, ready: Callable[[], object] | None = None) -> Server:
    """Make the server of an application that listens on an open socket; `ready` in place of saying so."""
    server = application.config.server
    config = uvicorn.Config(
        application.asgi,
        http=application.protocol,
        loop="uvloop",
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=max(1, round(server.grace_s)),
        backlog=BACKLOG,
    )
    return Server(config, application, ready or partial(say_where, opened))
