"""How many CPUs this process may really use."""

import math
import os
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUP = Path("/proc/self/cgroup")


def usable_cpus() -> int:
    """Count the CPUs of the process's affinity, or what the quota of a control group leaves of them; at least 1."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, int(min(affinity, quota(CGROUPS, OWN_CGROUP))))


def quota(cgroups: Path, own: Path) -> float:
    """CPUs' worth of time that the control groups of this process allow; infinite without a limit.

    A group's limit holds for all below it, so every group on the way up counts
    (Linux, admin-guide/cgroup-v2 "cpu.max"; scheduler/sched-bwc for version 1).
    """
    limits = [math.inf]
    for line in _text(own).split("\n"):
        _, _, member = line.partition(":")
        controllers, _, path = member.partition(":")
        if not controllers or "cpu" in controllers.split(","):
            root = cgroups / controllers
            group = root / path.strip("/")
            limits += [_limit(place) for place in (group, *group.parents) if place.is_relative_to(root)]
    return min(limits)


def _limit(group: Path) -> float:
    text = _text(group / "cpu.max") or f"{_text(group / 'cpu.cfs_quota_us')} {_text(group / 'cpu.cfs_period_us')}"
    try:
        allowed_us, period_us = map(int, text.split())
    except ValueError:
        return math.inf  # "max", or no such file
    return allowed_us / period_us if allowed_us > 0 else math.inf


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
