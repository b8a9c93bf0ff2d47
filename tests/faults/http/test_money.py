"""What calls cost, as clients and the ledger see it, on a running gateway."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from gateway import chat, chunk, gateway, to_upstream
from money import key, ledger, priced
from raw_upstream import Peer, raw_upstream

from trunkline.app import Application
from trunkline.config.load import build
from trunkline.config.read import ConfigError
from trunkline.config.spoken import this_build
from trunkline.core.keys import GroupChanges, Rates
from trunkline.core.money import Budget

pytestmark = pytest.mark.faults

USAGE = {"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500}
COST_USD = 0.006


async def answer(peer: Peer, usage: object = USAGE) -> None:
    """Answer every request, streamed or not."""
    while True:
        asked = json.loads((await peer.request())[1])
        members = {"usage": usage} if usage else {}
        if asked.get("stream"):
            events = chunk({"content": "Hello"}) + chunk({}, "stop", **members) + b"data: [DONE]\n\n"
            await peer.answer(events, "content-type: text/event-stream")
        else:
            message = {"role": "assistant", "content": "Hello"}
            whole = {"id": "1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], **members}
            await peer.answer(json.dumps(whole).encode(), "content-type: application/json")


async def answer_without_usage(peer: Peer) -> None:
    await answer(peer, None)


async def test_the_cost_is_told_as_the_ledger_has_it(tmp_path: Path) -> None:
    async with raw_upstream(answer) as upstream, gateway(tmp_path, priced(upstream.url)) as gate:
        whole = await gate.ask(chat())
        assert whole.headers["x-trunkline-cost"] == f"{COST_USD:.6f}"
        assert "cost" not in (await whole.json())["usage"]
        options = {"include_usage": True, "include_cost": True}
        streamed = await (await gate.ask(chat(stream=True, stream_options=options))).events()
        assert streamed[-2]["usage"]["cost"] == COST_USD
        plain = await (await gate.ask(chat(stream=True, stream_options={"include_usage": True}))).events()
        assert "cost" not in plain[-2]["usage"]
        rows = await ledger(tmp_path, 3)
    assert [row.cost_microusd for row in rows] == [6000, 6000, 6000]
    assert [row.estimated for row in rows] == [False] * 3
    assert all(row.price_version for row in rows)


async def test_usage_that_is_our_own_count_is_marked(tmp_path: Path) -> None:
    async with raw_upstream(answer_without_usage) as upstream, gateway(tmp_path, priced(upstream.url)) as gate:
        await (await gate.ask(chat(stream=True))).events()
        await (await gate.ask(chat())).json()
        rows = await ledger(tmp_path, 2)
    assert [row.estimated for row in rows] == [True, True]
    assert all(row.completion_tokens > 0 and row.prompt_tokens > 0 for row in rows)


async def test_the_count_of_a_long_prompt_is_the_same_streamed_and_not(tmp_path: Path) -> None:
    long = [{"role": "user", "content": "four" * 10_000}]
    async with raw_upstream(answer_without_usage) as upstream, gateway(tmp_path, priced(upstream.url)) as gate:
        await (await gate.ask(chat(stream=True, messages=long))).events()
        await (await gate.ask(chat(messages=long))).json()
        rows = await ledger(tmp_path, 2)
    assert [row.prompt_tokens for row in rows] == [10_004, 10_004]


async def test_a_price_that_is_unknown(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    async with raw_upstream(answer) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        limited = await gate.ask(chat(), authorization=await key(gate, budget=Budget(total=10_000_000)))
        assert limited.status == 403
        assert "the price of 'm' is not known" in (await limited.json())["error"]["message"]
        free = await gate.ask(chat(), authorization=await key(gate))
        assert free.status == 200
        assert "x-trunkline-cost" not in free.headers
        assert [row.cost_microusd for row in await ledger(tmp_path, 1)] == [None]
    told = [json.loads(line) for line in capfd.readouterr().err.splitlines() if line.startswith("{")]
    assert [line.get("unpriced") for line in told] == [None, True]


async def test_a_group_has_a_budget_of_its_own(tmp_path: Path) -> None:
    async with raw_upstream(answer) as upstream, gateway(tmp_path, priced(upstream.url)) as gate:
        group = await gate.application.keys.create_group(GroupChanges(name="team", budget=Budget(day=10_000)))
        anna, ben = [await key(gate, group_id=group.id) for _ in range(2)]
        body = chat(max_tokens=500)
        assert (await gate.ask(body, authorization=anna)).status == 200
        refused = await gate.ask(body | {"max_tokens": 1000}, authorization=ben)
        assert refused.status == 402
        assert "the group's budget of $0.01 a day" in (await refused.json())["error"]["message"]


def test_a_listener_open_to_others_needs_an_admin_key(tmp_path: Path) -> None:
    tables = {"server": {"listen": "0.0.0.0:0", "data_dir": str(tmp_path)}, "providers": {"local": {"enabled": False}}}
    with pytest.raises(ConfigError, match=r"set TRUNKLINE_ADMIN_KEY to a long random text, such as .*openssl rand"):
        Application(build(tables, {}, {}, this_build()), {})
    Application(build(tables, {"TRUNKLINE_ADMIN_KEY": "k" * 32}, {}, this_build()), {})


async def test_who_leaves_before_the_answer_pays_for_what_was_asked(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def never(peer: Peer) -> None:
        await peer.request()
        asked.set()
        await peer.gone()

    async with raw_upstream(never) as upstream, gateway(tmp_path, priced(upstream.url)) as gate:
        body = chat(stream=True) | {"messages": [{"role": "user", "content": "four" * 1000}]}
        await gate.send("POST", "/v1/chat/completions", json.dumps(body).encode())
        await asked.wait()
        gate.answers[-1].leave()
        (row,) = await ledger(tmp_path, 1)
    assert (row.end_reason, row.prompt_tokens, row.completion_tokens, row.estimated) == ("cancelled", 1004, 0, True)
    assert row.cost_microusd == 2008


async def cut(peer: Peer) -> None:
    """Cut every answer after its usage; that of the model `early` is told at the beginning."""
    _, body = await peer.request()
    if json.loads(body)["model"] == "early":
        begun = {"prompt_tokens": 1000, "completion_tokens": 1, "total_tokens": 1001}
        events = chunk({"content": ""}, usage=begun) + chunk({"content": "Hello and more words"})
    else:
        events = chunk({"content": "Hello"}) + chunk(choices=[], usage=USAGE)
    await peer.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + events)


async def test_the_providers_numbers_count_as_far_as_they_go(tmp_path: Path) -> None:
    async with raw_upstream(cut) as upstream, gateway(tmp_path, priced(upstream.url)) as gate:
        for model in ("late", "early"):
            events = await (await gate.ask(chat(model, stream=True))).events()
            assert events[-1]["error"]["code"] == "upstream_incomplete"
        rows = {row.model: row for row in await ledger(tmp_path, 2)}
    late, early = rows["late"], rows["early"]
    assert (late.prompt_tokens, late.completion_tokens, late.estimated, late.cost_microusd) == (1000, 500, False, 6000)
    assert (early.prompt_tokens, early.completion_tokens, early.estimated) == (1000, 5, True)


async def embed(peer: Peer) -> None:
    while True:
        _, body = await peer.request()
        if b"broken" in body:
            await peer.answer(b"{}", status="500 Internal Server Error")
            continue
        usage = {} if b"uncounted" in body else {"usage": {"prompt_tokens": 1000, "total_tokens": 1000}}
        usage = {"usage": {"total_tokens": 1000}} if b"totalled" in body else usage
        await peer.answer(json.dumps({"object": "list", "data": [], **usage}).encode())


async def test_embeddings_cost_what_they_cost(tmp_path: Path) -> None:
    async with raw_upstream(embed) as upstream, gateway(tmp_path, priced(upstream.url)) as gate:

        async def ask(model: str, text: object, who: str) -> int:
            answer = await gate.ask({"model": model, "input": text}, "/v1/embeddings", authorization=who)
            if answer.status == 200:
                assert answer.headers["x-trunkline-attempts"] == "1"
                assert answer.headers["x-trunkline-cost"] == ("0.000008" if model == "uncounted" else "0.002000")
            return answer.status

        anna = await key(gate, budget=Budget(total=40_000), rates=Rates(requests=4))
        assert await ask("e", "x", anna) == 200
        assert await ask("uncounted", ["four", [1, 2, 3]], anna) == 200
        assert await ask("totalled", "x", await key(gate)) == 200
        assert await ask("broken", "x", anna) == 502
        assert await ask("e", "x" * 100_000, anna) == 402
        assert await ask("e", "x", anna) == 429
        assert await ask("e", "x", await key(gate, models=("other-*",))) == 403
        rows = {row.model: row for row in await ledger(tmp_path, 4)}
    assert {row.kind for row in rows.values()} == {"embedding"}
    assert (rows["e"].prompt_tokens, rows["e"].cost_microusd, rows["e"].route) == (1000, 2000, "/v1/embeddings")
    assert (rows["uncounted"].prompt_tokens, rows["uncounted"].estimated) == (4, True)
    assert (rows["totalled"].prompt_tokens, rows["totalled"].cost_microusd) == (1000, 2000)
    assert (rows["broken"].end_reason, rows["broken"].cost_microusd) == ("failed", 0)


@pytest.mark.parametrize("dearer", [{"cache_control": {"type": "ephemeral"}}, {"modalities": ["text", "audio"]}])
async def test_what_may_be_dearer_is_set_aside(tmp_path: Path, dearer: dict[str, Any]) -> None:
    part = {"type": "text", "text": "four" * 1000}
    tables = priced("http://127.0.0.1:9", input_per_mtok=2, cache_write_per_mtok=4, output_per_mtok=8)
    tables["models"]["*"]["price"]["audio_output_per_mtok"] = 80
    plain = chat(max_tokens=100) | {"messages": [{"role": "user", "content": [part]}]}
    marked = {"messages": [{"role": "user", "content": [part | dearer]}]} if "cache_control" in dearer else dearer
    async with gateway(tmp_path, tables) as gate:
        anna = await key(gate, budget=Budget(total=4_500))
        assert (await gate.ask(plain, authorization=anna)).status == 503
        assert (await gate.ask(plain | marked, authorization=anna)).status == 402


@pytest.mark.parametrize(
    ("model", "members", "most"),
    [
        ("up/reel", {}, 800_000),  # the longest that it makes
        ("up/reel", {"seconds": 4}, 400_000),
        ("up/reel", {"n": 2, "duration": 4}, 800_000),
        ("up/reel", {"messages": [{"role": "user", "content": "a dog --duration 4"}]}, 400_000),
        ("up/any", {}, 1_500_000),  # nobody knows
        ("up/any", {"seconds": 40}, 4_000_000),
    ],
)
async def test_a_film_over_chat_is_set_aside_as_it_is_asked_for(
    tmp_path: Path, model: str, members: dict[str, Any], most: int
) -> None:
    films = {"reel": {"kind": "video", "seconds": [4, 8], "max_n": 2}, "any": {"kind": "video"}}
    tables = to_upstream("http://127.0.0.1:9")
    tables["providers"]["up"] |= {"models": films, "price": {"per_second": 0.1}}
    del tables["models"]
    async with gateway(tmp_path, tables) as gate:
        enough, less = [await key(gate, budget=Budget(total=money)) for money in (most, most - 1)]
        assert (await gate.ask(chat(model, **members), authorization=enough)).status == 503
        refused = await gate.ask(chat(model, **members), authorization=less)
        assert refused.status == 402, await refused.json()


async def test_the_larger_of_two_limits_is_set_aside(tmp_path: Path) -> None:
    both: dict[str, Any] = {"max_completion_tokens": 5, "max_tokens": 10_000}  # many providers read the second alone
    async with gateway(tmp_path, priced("http://127.0.0.1:9")) as gate:
        anna = await key(gate, budget=Budget(total=50_000))
        assert (await gate.ask(chat(max_completion_tokens=5), authorization=anna)).status == 503
        assert (await gate.ask(chat(**both), authorization=anna)).status == 402


async def test_reasoning_that_is_dearer_is_set_aside(tmp_path: Path) -> None:
    tables = priced("http://127.0.0.1:9", input_per_mtok=1, output_per_mtok=8, reasoning_per_mtok=20)
    async with gateway(tmp_path, tables) as gate:
        enough, less = [await key(gate, budget=Budget(total=money)) for money in (21_000, 19_000)]
        assert (await gate.ask(chat(max_tokens=1000), authorization=enough)).status == 503
        assert (await gate.ask(chat(max_tokens=1000), authorization=less)).status == 402
