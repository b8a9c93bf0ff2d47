import math
import os
from pathlib import Path

import pytest

from trunkline.local.text.cpus import quota, usable_cpus


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_at_least_one_and_no_more_than_the_affinity() -> None:
    assert 1 <= usable_cpus() <= len(os.sched_getaffinity(0))


def test_version_2_takes_the_lowest_limit_on_the_way_up(tmp_path: Path) -> None:
    put(tmp_path / "own", "0::/app.slice/trunkline.service\n")
    put(tmp_path / "cgroups/app.slice/trunkline.service/cpu.max", "400000 100000\n")
    put(tmp_path / "cgroups/app.slice/cpu.max", "150000 100000\n")
    assert quota(tmp_path / "cgroups", tmp_path / "own") == 1.5


def test_version_2_in_a_container_sees_its_own_root(tmp_path: Path) -> None:
    put(tmp_path / "own", "0::/\n")
    put(tmp_path / "cgroups/cpu.max", "200000 100000\n")
    assert quota(tmp_path / "cgroups", tmp_path / "own") == 2


def test_version_1_reads_the_quota_of_its_cpu_hierarchy(tmp_path: Path) -> None:
    put(tmp_path / "own", "5:memory:/docker/x\n4:cpu,cpuacct:/docker/x\n0::/\n")
    put(tmp_path / "cgroups/cpu,cpuacct/docker/x/cpu.cfs_quota_us", "300000\n")
    put(tmp_path / "cgroups/cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000\n")
    put(tmp_path / "cgroups/cpu,cpuacct/cpu.cfs_quota_us", "-1\n")
    put(tmp_path / "cgroups/cpu,cpuacct/cpu.cfs_period_us", "100000\n")
    assert quota(tmp_path / "cgroups", tmp_path / "own") == 3


@pytest.mark.parametrize("limit", ["max 100000\n", "", "nonsense\n"])
def test_no_limit(tmp_path: Path, limit: str) -> None:
    put(tmp_path / "own", "0::/\n")
    put(tmp_path / "cgroups/cpu.max", limit)
    assert quota(tmp_path / "cgroups", tmp_path / "own") == math.inf


def test_no_control_groups_at_all(tmp_path: Path) -> None:
    assert quota(tmp_path / "cgroups", tmp_path / "own") == math.inf
