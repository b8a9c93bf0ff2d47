"""A server of a test's own that may be stopped and started."""

import random
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager


class Stoppable(ABC):
    @abstractmethod
    def start(self) -> None:
        """Start it, and wait until it answers."""

    @abstractmethod
    def stop(self) -> None:
        """Stop it at once, as a crash does."""

    @contextmanager
    def away(self) -> Iterator[None]:
        """Stop it for a while."""
        self.stop()
        try:
            yield
        finally:
            self.start()


def kept_port() -> int:
    """Find a free port below those of clients' connections, so that none takes it while a server is away."""
    while True:
        port = random.randrange(22_000, 30_000)  # beside those of the S3 server
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return port


def answers(host: str, port: int, within_s: float = 120) -> None:
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
