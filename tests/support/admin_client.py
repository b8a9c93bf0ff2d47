"""An operator's script: asks the gateway's `/admin/api` with the admin key."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from gateway import Answer, Gateway

ADMIN_KEY = "the-admin-key"


class Admin:
    """Asks with the admin key; every answer must have the status that was expected."""

    def __init__(self, gate: Gateway) -> None:
        self._gate = gate

    async def raw(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        answer = await self._gate.send(
            method, f"/admin/api/{path}", body, **{"authorization": f"Bearer {ADMIN_KEY}"} | headers
        )
        await answer.read_head()
        return answer

    async def __call__(self, method: str, path: str, body: Any = None, status: int = 200) -> Any:
        answer = await self.raw(method, path, b"" if body is None else json.dumps(body).encode())
        assert answer.headers["cache-control"] == "no-store"
        told = None if answer.status == 204 else await answer.json()
        assert answer.status == status, told
        return told

    async def once(self, path: str, seen: Callable[[Any], object]) -> Any:
        """Ask again and again until something is seen in the answer."""
        while not seen(told := await self("GET", path)):  # noqa: ASYNC110 - the ledger is written behind the answer
            await asyncio.sleep(0.02)
        return told

    async def refused(self, method: str, path: str, body: Any = None) -> tuple[int, str, str | None]:
        """Ask for what is refused; gives status, code and param."""
        answer = await self.raw(method, path, b"" if body is None else json.dumps(body).encode())
        error = (await answer.json())["error"]
        assert set(error) == {"message", "type", "param", "code"}
        assert error["message"].endswith(".") or "\n" not in error["message"]
        return answer.status, error["code"], error["param"]
