"""How the suite runs: what is collected, and how many workers do it."""

import gc
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

from trunkline.config import providers

settings.register_profile("here", deadline=None, max_examples=40)  # how long one takes says how busy the machine is
settings.register_profile("nightly", deadline=None, max_examples=20_000)  # --hypothesis-profile=nightly
settings.load_profile("here")
HERE = Path(__file__).parent
SUITES = ("faults", "oracles", "scale", "browser")
"""Markers, each with a folder where nothing else is."""

if sys.dont_write_bytecode:  # else each worker, and each process that a test starts, would compile everything anew
    sys.dont_write_bytecode = False
    os.environ["PYTHONDONTWRITEBYTECODE"] = ""

providers.shipped_tables = cache(providers.shipped_tables)  # hundreds of gateways start, and none changes them


def pytest_xdist_auto_num_workers() -> int:
    """Give the number of workers for `-n auto`."""
    return 2 * len(os.sched_getaffinity(0))  # half of them wait


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import nothing of a suite that is not asked for: only the fast one has the time that it takes."""
    suite = collection_path.relative_to(HERE).parts[:1] if collection_path.is_relative_to(HERE) else ()
    return True if suite and suite[0] in SUITES and f"not {suite[0]}" in config.option.markexpr else None


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Leave what hangs together in a cycle where it is."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()
