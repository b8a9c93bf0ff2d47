"""Error answers of providers that repeat the key they were sent: it is taken out before anyone reads them."""

from trunkline.core.ports import HttpError, HttpResponse

ERROR_BYTES = 1024 * 1024
HIDDEN = b"***"


class Unrepeated:
    """An error answer without a secret; implements `core.ports.HttpResponse`."""

    def __init__(self, response: HttpResponse, secret: bytes) -> None:
        self.status = response.status
        self.headers = response.headers
        self._response = response
        self._secret = secret
        self._over = False

    async def read(self) -> bytes:
        """Give the whole body at once, or what comes of it before it breaks; then nothing."""
        if self._over:
            return b""
        self._over = True
        body = b""
        try:
            while len(body) < ERROR_BYTES and (piece := await self._response.read()):
                body += piece
        except HttpError:
            if not body:
                raise
        return body.replace(self._secret, HIDDEN)

    async def body(self, max_bytes: int) -> bytes:
        """Give the body without the secret."""
        return (await self._response.body(max_bytes)).replace(self._secret, HIDDEN)

    async def aclose(self) -> None:
        """Let the exchange go."""
        await self._response.aclose()
