"""What `inspect` says that clients do with a stream is what they do."""

import asyncio
import json
from collections import Counter
from typing import Any

import pytest
from corpus import cases
from gateway import chat
from one_fault import CLEAN, CLEAN_CALLS, FAULTS, meaning
from outcomes import Meant, outcome
from raw_upstream import Peer, raw_upstream
from readers import READERS, Readers

from trunkline.core.rules import RULES
from trunkline.inspection.clients import MODES
from trunkline.inspection.examine import examine

pytestmark = [pytest.mark.oracles, pytest.mark.timeout(1200)]  # the first of each library has it installed
HARMLESS = [name for name, rule in RULES.items() if rule.severity == "harmless"]  # told beside others only
ENOUGH = 0.95
"""How much of what is said of the corpus, where faults come together, has to be so (measured: 95.4 % of 3,320)."""


async def measure(bodies: dict[str, bytes], readers: Readers) -> dict[str, dict[str, Any]]:
    """Let every mode read every body as it is; by body and mode."""

    async def serve(peer: Peer) -> None:
        while True:
            _, body = await peer.request()
            await peer.answer(bodies[json.loads(body)["model"]], "content-type: text/event-stream")

    told: dict[str, dict[str, Any]] = {name: {} for name in bodies}

    async def read(modes: list[str], url: str) -> None:
        for name, body in bodies.items():
            asked = chat(name, stream_options={"include_usage": True})
            if b"tool_calls" in body or b"function_call" in body:
                function = {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}
                asked["tools"] = [{"type": "function", "function": function}]
            for mode in modes:
                told[name][mode] = await readers.read(mode, url, asked)

    async with raw_upstream(serve) as upstream, asyncio.TaskGroup() as group:
        for place in {place for place, _ in READERS.values()}:
            group.create_task(read([mode for mode, (of, _) in READERS.items() if of == place], upstream.url))
    return told


def test_the_modes_are_those() -> None:
    assert list(READERS) == list(MODES)


async def test_streams_with_one_fault(readers: Readers) -> None:
    bodies = {**FAULTS, "clean": CLEAN, "tool_clean": CLEAN_CALLS}
    told = await measure(bodies, readers)
    wrong = {}
    for name, body in bodies.items():
        report = examine(body)
        rule = name.partition(" ")[0]
        told_of = {each.rule for each in report.departures}
        assert rule in ("clean", "tool_clean", "start_missing", *HARMLESS) or rule in told_of
        did = {mode: outcome(mode, told[name][mode], meaning(name)) for mode in READERS}
        said = {client.mode: client.outcome for client in report.clients}
        if did != said:
            wrong[name] = {mode: (did[mode], said[mode]) for mode in READERS if did[mode] != said[mode]}
    assert wrong == {}


async def test_the_corpus(readers: Readers) -> None:
    alone = [case for case in cases() if "choice_index_wrong" not in case.rules]  # else it matters what was asked for
    bodies = {f"{case.dialect}/{case.name}": case.upstream for case in alone}
    told = await measure(bodies, readers)
    found: Counter[bool] = Counter()
    for name, body in bodies.items():
        report = examine(body)
        if report.wrappings:
            continue  # what is said is of what was taken out of them
        chunks = [json.loads(chunk) for row in report.rows for chunk in row.chunks if chunk.startswith('{"id')]
        meant = Meant(
            text=report.text,
            calls=[(call["name"], call["arguments"]) for call in report.tool_calls],
            finish=report.finish_reason,
            tokens=report.usage["total_tokens"] if report.usage else None,
            model=chunks[0]["model"] if chunks else "",
        )
        found.update(outcome(each.mode, told[name][each.mode], meant) == each.outcome for each in report.clients)
    print(f"{found[True]} of {found.total()} outcomes are as inspect says")
    assert found[True] >= ENOUGH * found.total()
