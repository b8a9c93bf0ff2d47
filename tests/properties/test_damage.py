"""A damaged stream never raises: it is repaired, or it fails; and it never holds more than it was sent."""

import random
import tracemalloc

import pytest
from corpus import Case, cases, encode, run
from damage import damage, pieces

from trunkline.core.stream import Grammar

CASES = [case for case in cases() if case.upstream]


def check(case: Case, seed: int) -> None:
    chance = random.Random(seed)
    events, _ = run(case, pieces(damage(case.upstream, chance), chance), thorough=seed % 10 == 0)
    grammar = Grammar()
    for event in events:
        grammar.feed(event)
    grammar.close()
    encode(events)


def many(count: int) -> None:
    for seed in range(count):
        case = CASES[seed % len(CASES)]
        try:
            check(case, seed)
        except Exception as error:
            raise AssertionError(f"{case.dialect}/{case.name}, seed {seed}") from error


def test_two_thousand_damaged_streams() -> None:
    many(2_000)


@pytest.mark.faults
def test_a_hundred_thousand_damaged_streams() -> None:
    many(100_000)


@pytest.mark.faults
def test_memory_stays_bounded() -> None:
    many(1_000)
    tracemalloc.start()
    many(2_000)
    before = tracemalloc.get_traced_memory()[0]
    many(4_000)
    kept = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert kept < 256 * 1024
