"""What is left behind in DBOS's tables, over the lives of some processes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.faults
SCRIPT = Path(__file__).parent.parent / "support" / "durable_life.py"


def life(file: Path, *args: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, SCRIPT, file, *args], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def test_ended_workflows_and_queues_of_the_dead_are_forgotten(tmp_path: Path) -> None:
    file = tmp_path / "dbos.db"
    first = life(file, "a", "a", "3")
    for job in ("a-0", "a-1", "a-2"):  # side by side, in any order; each has its own
        assert [done for done in first["done"] if done.startswith(job)] == [
            f"{job} submit",
            f"{job} wait",
            f"{job} store",
        ]
    assert len(first["done"]) == 9
    assert (first["queues"], first["pruned"], first["left"]) == (["jobs-a"], 0, 3)
    second = life(file, "b", "a,b", "1")
    assert (second["queues"], second["pruned"], second["left"]) == (["jobs-a", "jobs-b"], 0, 4)
    third = life(file, "c", "b,c", "0", "0")
    assert (third["queues"], third["pruned"], third["left"]) == (["jobs-b", "jobs-c"], 4, 0)


def test_a_thousand_ended_jobs_do_not_slow_the_next_start(tmp_path: Path) -> None:
    file = tmp_path / "dbos.db"
    empty = life(file, "a", "a", "1000")
    full = life(file, "b", "b", "1", "0")
    print(f"up after {empty['up_s']:.1f} s with none, {full['up_s']:.1f} s with 1,000 ended; {full['pruned']} pruned")
    assert full["pruned"] >= 1000
