"""A server of a test's own that may be stopped and started."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stoppable:
    """Has `start` and `stop`."""

    def start(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        raise NotImplementedError

    @contextmanager
    def away(self) -> Iterator[None]:
        """Stop it for a while."""
        self.stop()
        try:
            yield
        finally:
            self.start()


def answers(host: str, port: int, within_s: float = 20) -> None:
    """Wait until a server takes connections."""
    give_up = time.monotonic() + within_s
    while True:
        try:
            socket.create_connection((host, port), 1).close()
        except OSError:
            assert time.monotonic() < give_up, f"nothing listens on port {port}"
            time.sleep(0.05)
        else:
            return
