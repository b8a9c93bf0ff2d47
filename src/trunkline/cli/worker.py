"""One of several processes on one address, as `cli.workers` starts it: `python -m trunkline.cli.worker ORDERS`."""

import gc
import os
import signal
import socket
import sys
import threading
from functools import partial

import msgspec
from msgspec import Struct

READY = b"r"


class Orders(Struct):
    """What the parent tells a worker."""

    config: str | None
    flags: dict[str, str]
    number: int
    count: int
    directory: str
    address: str
    """`HOST:PORT`, with the port that all of them share."""
    line: int
    """A socket to the parent, inherited: READY is written to it once; it is closed when the parent is gone."""


def main() -> None:
    """Serve until told to end, or until the parent is gone."""
    gc.disable()  # until it serves, as in `cli.serve`
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until it can be heeded
    orders = msgspec.json.decode(sys.argv[1], type=Orders)
    line = socket.socket(fileno=orders.line)
    threading.Thread(target=_end_with_parent, args=(line,), daemon=True).start()

    from trunkline.app import Application
    from trunkline.app_workers import Place
    from trunkline.cli.loading import load_or_exit
    from trunkline.cli.server import bind, make_server, set_up_log
    from trunkline.config.load import load
    from trunkline.config.read import ConfigError
    from trunkline.config.spoken import this_build
    from trunkline.core.errors import GatewayError
    from trunkline.local.text.weights import WeightsError

    set_up_log()
    loaded = load_or_exit(orders.config, orders.flags)
    try:
        again = partial(load, orders.config, os.environ, orders.flags, this_build())
        application = Application(loaded, os.environ, again, Place(orders.number, orders.count, orders.directory))
        opened = bind(orders.address, shared=True)
    except (ConfigError, GatewayError, WeightsError, OSError) as error:
        sys.stderr.write(f"trunkline: {error}\n")
        sys.exit(1)
    server = make_server(application, opened, lambda: line.send(READY))
    server.run(sockets=[opened])
    sys.exit(server.status)


def _end_with_parent(line: socket.socket) -> None:
    while line.recv(1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
