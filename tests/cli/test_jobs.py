"""`trunkline jobs`, on a real database."""

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from job_tools import a_job, migrated, opened

from trunkline.cli.main import trunkline
from trunkline.storage.sql.jobs import SqlJobs

__all__ = ["migrated"]


@pytest.fixture
def data_dir(tmp_path: Path, migrated: Path) -> Path:
    async def fill() -> None:
        async with opened(tmp_path / "trunkline.db") as database:
            for name in ("video_1", "video_2"):
                await SqlJobs(database).add(a_job(name, "http://127.0.0.1:1", {}))

    (tmp_path / "trunkline.db").write_bytes(migrated.read_bytes())
    asyncio.run(fill())
    return tmp_path


def run(data_dir: Path, *arguments: str) -> Result:
    return CliRunner().invoke(trunkline, ["jobs", *arguments, "--data-dir", str(data_dir)])


def test_jobs_are_listed_shown_and_stopped(data_dir: Path) -> None:
    lines = run(data_dir, "list").stdout.splitlines()
    assert sorted(line.split()[:2] for line in lines) == [["video_1", "queued"], ["video_2", "queued"]]
    assert len(json.loads(run(data_dir, "list", "--active", "--limit", "1", "--json").stdout)) == 1
    shown = dict(line.split(maxsplit=1) for line in run(data_dir, "show", "video_1").stdout.splitlines())
    assert (shown["state"], shown["provider"], shown["created"][-4:]) == ("queued", "home", " UTC")
    assert "request" not in shown
    stopped = run(data_dir, "cancel", "video_1", "--json")
    assert json.loads(stopped.stdout)["cancel_requested"] is True


def test_an_unknown_job_is_told(data_dir: Path) -> None:
    for command in ("show", "cancel"):
        result = run(data_dir, command, "video_9")
        assert (result.exit_code, result.stderr) == (1, "trunkline: there is no job 'video_9'\n")


def test_no_job_is_told_too(tmp_path: Path, migrated: Path) -> None:
    (tmp_path / "trunkline.db").write_bytes(migrated.read_bytes())
    result = run(tmp_path, "list")
    assert (result.stdout, result.stderr) == ("", "There is no job yet.\n")
