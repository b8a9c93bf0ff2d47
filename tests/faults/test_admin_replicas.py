"""Calls in flight are seen, and ended, from another process on the same database."""

from pathlib import Path

import pytest
from admin_client import ADMIN_KEY, Admin
from gateway import chat, chunk, gateway, to_upstream
from raw_upstream import Peer, raw_upstream

pytestmark = pytest.mark.faults
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


async def endless(peer: Peer) -> None:
    await peer.request()
    await peer.send(HEAD + chunk({"role": "assistant", "content": "Hello"}))
    await peer.gone()


@pytest.mark.parametrize("resume", [{}, {"x_trunkline_resume": "true"}])
async def test_a_call_is_ended_from_another_replica(tmp_path: Path, resume: dict[str, str]) -> None:
    async with raw_upstream(endless) as upstream:
        tables = to_upstream(upstream.url, idle_s=60) | {"server": {"admin_key": ADMIN_KEY}}
        async with gateway(tmp_path, tables) as one, gateway(tmp_path, tables) as other:
            answer = await one.ask(chat(stream=True), x_request_id="far", **resume)
            admin = Admin(other)
            told = await admin.once("calls", lambda told: any(call["state"] == "streaming" for call in told["items"]))
            [call] = told["items"]
            assert (call["id"], call["provider"], call["state"]) == ("far", "up", "streaming")
            counts = sorted(replica["calls"] for replica in (await admin("GET", "overview"))["replicas"])
            assert counts == [0, 1]
            assert await admin("DELETE", "calls/far", status=202) == {"id": "far", "cancelled": True}
            await upstream.peers[0].closed.wait()
            body = (await answer.body()).decode()
            assert '"code":"cancelled"' in body
            assert "[DONE]" not in body
            await admin.once("calls", lambda told: told["items"] == [])
            assert await admin.refused("DELETE", "calls/far") == (404, "not_found", None)
            used = (await admin.once("usage", lambda told: told["totals"]["calls"]))["totals"]
            assert (used["calls"], used["failed"]) == (1, 0)
