"""How the suite runs: most of its tests wait for sockets and timers, so there are more workers than cores."""

import os

from hypothesis import settings

settings.register_profile("here", deadline=None)  # how long an example takes says how busy the machine is
settings.register_profile("nightly", deadline=None, max_examples=20_000)  # --hypothesis-profile=nightly
settings.load_profile("here")
WORKERS_PER_CORE = 2


def pytest_xdist_auto_num_workers() -> int:
    """Give the number of workers for `-n auto`."""
    return WORKERS_PER_CORE * len(os.sched_getaffinity(0))
