"""Answers of providers that repeat the key they were sent: it is taken out before anyone reads them."""

from collections.abc import Callable

from trunkline.core.ports import HttpResponse

HIDDEN = b"***"


class Unrepeated:
    """An answer without a secret, however its pieces are cut; implements `core.ports.HttpResponse`."""

    def __init__(self, response: HttpResponse, secret: bytes) -> None:
        self.status = response.status
        self.headers = response.headers
        self._response = response
        self._secret = secret
        self._held = b""
        """What may be the secret's beginning."""

    async def read(self) -> bytes:
        """Give the next piece without the secret, `b""` at the end."""
        while piece := await self._response.read():
            data = (self._held + piece).replace(self._secret, HIDDEN)
            end = len(data) - self._begun(data)
            self._held = data[end:]
            if end:
                return data[:end]
        rest, self._held = self._held, b""
        return rest

    async def pipe(self, take: Callable[[bytes], bool]) -> bool:
        """Hand over each piece without the secret."""
        while data := await self.read():
            if not take(data):
                return False
        return True

    async def body(self, max_bytes: int) -> bytes:
        """Give the rest of the body without the secret."""
        rest, self._held = self._held + await self._response.body(max_bytes), b""
        return rest.replace(self._secret, HIDDEN)

    async def aclose(self) -> None:
        """Let the exchange go."""
        await self._response.aclose()

    def _begun(self, data: bytes) -> int:
        """Give how many of the last bytes may be the beginning of the secret."""
        longest = min(len(self._secret) - 1, len(data))
        return next((n for n in range(longest, 0, -1) if data.endswith(self._secret[:n])), 0)
