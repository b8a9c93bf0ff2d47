"""A second target is asked when the first has not answered after `hedge_s`; whoever is quicker answers."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from gateway import chat, chunk, gateway, to_upstream
from raw_upstream import Peer, Script, raw_upstream
from text_upstream import HEAD

from trunkline.calls.hedge import Race
from trunkline.core.keys import KeyChanges
from trunkline.core.money import Budget, LedgerRow
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.money import SqlMoney

pytestmark = pytest.mark.faults

USAGE = {"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500}


class Upstream:
    """Answers after a while, or never; notes whether it was asked, and whether it was left."""

    def __init__(self, text: str, wait_s: float | None, status: str = "") -> None:
        self.text = text
        self.wait_s = wait_s
        self.status = status
        self.asked = 0
        self.was_asked = asyncio.Event()
        self.after: asyncio.Event | None = None
        """What it waits for before anything else."""
        self.left = asyncio.Event()

    async def __call__(self, peer: Peer) -> None:
        await peer.request()
        self.asked += 1
        self.was_asked.set()
        if self.after:
            await self.after.wait()
        if self.wait_s is None:
            await peer.gone()
            self.left.set()
            return
        await asyncio.sleep(self.wait_s)
        if self.status:
            await peer.answer(b"{}", status=self.status)
            return
        events = chunk({"content": self.text}) + chunk({}, "stop", usage=USAGE) + b"data: [DONE]\n\n"
        await peer.answer(events, "content-type: text/event-stream")


def tables(first: str, second: str, hedge_s: float) -> dict[str, Any]:
    made = to_upstream(first)
    made["providers"]["other"] = {**made["providers"]["up"], "base_url": second}
    made["models"] = {
        "m": {
            "targets": ["up:a", "other:b"],
            "hedge_s": hedge_s,
            "timeouts": {"idle_s": 2},
            "price": {"input_per_mtok": 2.0, "output_per_mtok": 8.0},
        }
    }
    return made


async def race(tmp_path: Path, first: Script, second: Script, hedge_s: float = 0.1) -> tuple[Any, list[LedgerRow], int]:
    """Ask once; give the answer, the ledger, and what was spent of the key's budget."""
    async with raw_upstream(first) as one, raw_upstream(second) as two:
        async with gateway(tmp_path, tables(one.url, two.url, hedge_s)) as gate:
            made = await gate.application.keys.create(KeyChanges(name="anna", budget=Budget(total=10**8)))
            answer = await gate.ask(chat(stream=True, max_tokens=500), authorization=f"Bearer {made.token}")
            text = (await answer.body()).decode()
        database = Database.at(tmp_path / "trunkline.db")  # the gateway has gone: everything is booked
        try:
            await SqlMoney(database).sweep()
            rows = await SqlMoney(database).rows()
            (spend,) = await SqlMoney(database).spend(made.key.id, ["total"])
        finally:
            await database.close()
    assert spend.reserved == 0
    return (answer, text), sorted(rows, key=lambda row: row.end_reason), spend.spent


async def test_the_second_answers_where_the_first_does_not(tmp_path: Path) -> None:
    slow, fast = Upstream("slow", None), Upstream("fast", 0)
    (answer, text), (lost, won), spent = await race(tmp_path, slow, fast)
    assert '"content":"fast"' in text
    assert text.endswith("data: [DONE]\n\n")
    assert answer.headers["x-trunkline-provider"] == "other"
    assert answer.headers["x-trunkline-attempts"] == "2"
    assert answer.headers["x-trunkline-fallback-from"] == "up:a"
    assert slow.left.is_set()
    assert (won.end_reason, won.provider, won.cost_microusd, won.attempts) == ("completed", "other", 6000, 2)
    assert (lost.end_reason, lost.error_code, lost.provider, lost.estimated) == ("cancelled", "hedged", "up", True)
    assert lost.completion_tokens == 0
    assert lost.cost_microusd == 2 * lost.prompt_tokens > 0
    assert lost.request_id == won.request_id
    assert spent == 6000 + lost.cost_microusd


async def test_the_first_may_still_be_quicker(tmp_path: Path) -> None:
    first, second = Upstream("first", 0), Upstream("second", None)
    first.after = second.was_asked
    (answer, text), (lost, won), _ = await race(tmp_path, first, second)
    assert '"content":"first"' in text
    assert second.left.is_set()
    assert "x-trunkline-fallback-from" not in answer.headers
    assert (lost.provider, won.provider) == ("other", "up")


async def test_nobody_else_is_asked_where_the_first_is_quick(tmp_path: Path) -> None:
    first, second = Upstream("first", 0), Upstream("second", 0)
    (answer, text), rows, spent = await race(tmp_path, first, second, hedge_s=30)
    assert '"content":"first"' in text
    assert (second.asked, len(rows), spent) == (0, 1, 6000)
    assert answer.headers["x-trunkline-attempts"] == "1"


def noticed(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Give what is set when a race has noticed what became of one of its targets."""
    taken, take = asyncio.Event(), Race._take

    async def noted(race: Race, task: Any) -> None:
        await take(race, task)
        taken.set()

    monkeypatch.setattr(Race, "_take", noted)
    return taken


@pytest.mark.parametrize("hedged", [False, True])
async def test_a_first_that_fails_is_a_fallback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, hedged: bool
) -> None:
    first, second = Upstream("", 0, "500 Internal Server Error"), Upstream("second", 0)
    if hedged:
        first.after, second.after = second.was_asked, noticed(monkeypatch)
    (answer, text), rows, _ = await race(tmp_path, first, second, hedge_s=0.1 if hedged else 30)
    assert '"content":"second"' in text
    assert answer.headers["x-trunkline-fallback-from"] == "up:a"
    assert [(row.provider, row.end_reason) for row in rows] == [("other", "completed")]


async def test_a_winner_that_falls_silent_is_not_waited_for(tmp_path: Path) -> None:
    async def second(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD + chunk({"role": "assistant", "content": "begun"}))
        await peer.gone()

    (_, text), rows, _ = await race(tmp_path, Upstream("", None), second)
    assert '"content":"begun"' in text
    assert "upstream_timeout" in text
    assert "[DONE]" not in text
    assert sorted(row.end_reason for row in rows) == ["cancelled", "timeout"]


@pytest.mark.parametrize("failing", [False, True])
async def test_whoever_reads_the_request_is_booked_when_its_client_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, failing: bool
) -> None:
    taken = noticed(monkeypatch)
    first, second = Upstream("", 0 if failing else None, "500 Internal Server Error"), Upstream("", None)
    first.after = second.was_asked if failing else None
    async with raw_upstream(first) as one, raw_upstream(second) as two:
        async with gateway(tmp_path, tables(one.url, two.url, 0.05)) as gate:
            answer = await gate.send("POST", "/v1/chat/completions", json.dumps(chat(stream=True)).encode())
            await second.was_asked.wait()
            if failing:
                await taken.wait()
            answer.leave()
            await second.left.wait()
    database = Database.at(tmp_path / "trunkline.db")
    rows = await SqlMoney(database).rows()
    await database.close()
    booked = [("other", "cancelled")] if failing else [("other", "cancelled"), ("up", "cancelled")]
    assert sorted((row.provider, row.end_reason) for row in rows) == booked
    assert all(row.cost_microusd for row in rows)


async def test_both_fail(tmp_path: Path) -> None:
    first, second = Upstream("", 0.3, "500 Internal Server Error"), Upstream("", 0.3, "503 Service Unavailable")
    (answer, _), rows, spent = await race(tmp_path, first, second)
    assert answer.status in (502, 503)
    assert [row.end_reason for row in rows] == ["failed"]
    assert spent == 0
