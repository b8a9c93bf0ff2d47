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


async def test_of_calls_with_one_request_id_the_one_is_ended_that_was_meant(tmp_path: Path) -> None:
    async with raw_upstream(endless) as upstream:
        tables = to_upstream(upstream.url, idle_s=60) | {"server": {"admin_key": ADMIN_KEY}}
        async with (
            gateway(tmp_path, tables) as one,
            gateway(tmp_path, tables) as other,
            gateway(tmp_path, tables) as late,
        ):
            admin = Admin(other)
            first = await one.ask(chat(stream=True), x_request_id="same")
            await admin.once("calls", lambda told: told["items"])
            await admin("DELETE", "calls/same", status=202)
            assert '"code":"cancelled"' in (await first.body()).decode()
            await admin.once("calls", lambda told: told["items"] == [])
            kept = await late.ask(chat(stream=True), x_request_id="same")  # begins later than what was asked for
            [stays] = (await admin.once("calls", lambda told: told["items"]))["items"]
            meant = await late.ask(chat(stream=True), x_request_id="same")
            told = await admin.once("calls", lambda told: len(told["items"]) == 2)
            assert [call["id"] for call in told["items"]] == ["same", "same"]
            [call_id] = {call["call_id"] for call in told["items"]} - {stays["call_id"]}
            await admin("DELETE", f"calls/{call_id}", status=202)
            assert '"code":"cancelled"' in (await meant.body()).decode()
            told = await admin.once("calls", lambda told: len(told["items"]) == 1)
            assert told["items"][0]["call_id"] == stays["call_id"]
            assert b"Hello" in await kept.chunk()
            [here] = (await Admin(late)("GET", "calls"))["items"]
            await Admin(late)("DELETE", f"calls/{here['call_id']}", status=202)


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
