"""Running an application in this process: sockets, the event loop, signals."""

import asyncio
import gc
import logging
import signal
import socket
import sys

import uvicorn

from trunkline.app import Application

BACKLOG = 4096
GC_THRESHOLD = 20_000


def bind(listen: str) -> socket.socket:
    """Open the listening socket. Raises OSError."""
    host, _, port = listen.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        opened.bind((host, int(port)))
        opened.listen(BACKLOG)
    except OSError:
        opened.close()
        raise
    return opened


class Server(uvicorn.Server):
    """Says where it listens once it does; tells the application when it is going down."""

    def __init__(self, config: uvicorn.Config, application: Application, address: str) -> None:
        super().__init__(config)
        self._application = application
        self._address = address

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        if self._application.watch is not None:
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._application.watch.ask)
        gc.collect()
        gc.freeze()  # what is here now stays: looking at it again and again costs a tenth of the time
        gc.set_threshold(GC_THRESHOLD)
        if not self.should_exit:
            sys.stderr.write(f"trunkline: serving on {self._address}\n")
            sys.stderr.flush()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Fail readiness first, then let running answers end."""
        self._application.live.going_down = True
        await super().shutdown(sockets)


def run(application: Application) -> int:
    """Serve until a signal; gives the exit status."""
    server = application.config.server
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("trunkline").setLevel(logging.INFO)
    try:
        opened = bind(server.listen)
    except (OSError, ValueError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        sys.stderr.write(f"trunkline: cannot listen on {server.listen}: {reason}\n")
        return 1
    running = make_server(application, opened)
    running.run(sockets=[opened])
    return 0 if running.started else 1


def make_server(application: Application, opened: socket.socket) -> Server:
    """Make the server of an application that listens on an open socket."""
    server = application.config.server
    host, port = opened.getsockname()[:2]
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
    return Server(config, application, f"http://{f'[{host}]' if ':' in host else host}:{port}")
