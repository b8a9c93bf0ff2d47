"""Processes killed at their steps, one after another: money is booked once, a film is submitted once and never lost."""

import asyncio
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from film_provider import FilmProvider

pytestmark = pytest.mark.faults
SCRIPT = Path(__file__).parent.parent / "support" / "dying.py"
NOTHING, ONCE = [0, 0, 0, 0], [7, 0, 7, 1]
"""Spent, reserved, the ledger's sum and number of rows."""


async def deaths(work: str, place: Path, stride: int, provider: str = "") -> list[dict[str, Any]]:
    """Let processes die at every `stride`th step of a work; gives what each left, and the last, which lived."""
    command = (sys.executable, str(SCRIPT), work, str(place), provider, str(stride))
    running = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    said, _ = await running.communicate()
    assert running.returncode == 0
    left = [json.loads(line) for line in said.splitlines()]
    assert [one["killed"] for one in left] == [True] * (len(left) - 1) + [False]
    assert len(left) > 5
    return left


async def test_a_call_is_booked_once(tmp_path: Path) -> None:
    for left in await deaths("call", tmp_path, 5):
        assert left["sums"] == ONCE if left["told"] else left["sums"] in (NOTHING, ONCE)


async def test_a_job_is_settled_once(tmp_path: Path) -> None:
    for left in await deaths("job", tmp_path, 3):
        assert left["sums"] == (ONCE if left["billed"] else NOTHING)


async def test_a_film_is_submitted_once_and_kept(tmp_path: Path) -> None:
    async with FilmProvider() as provider:
        for left in await deaths("film", tmp_path, 11, provider.url):
            assert left["state"] in {"completed", "submit_unknown"}
            assert (left["files"], left["media"]) == ((2, 1) if left["state"] == "completed" else (0, 0))
    assert set(Counter(provider.submits).values()) == {1}
