"""What is made when it is first asked for."""

from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send


class Later:
    """Plain ASGI: an application that few ask for, so that its imports are no part of every start."""

    def __init__(self, make: Callable[[], ASGIApp]) -> None:
        self._make = make
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on."""
        if self._app is None:
            self._app = self._make()
        await self._app(scope, receive, send)
