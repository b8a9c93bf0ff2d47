"""`trunkline jobs`: pictures and films in the making, and those that were made."""

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from trunkline.cli.database import data_dir, with_database
from trunkline.cli.loading import as_json, config_file

if TYPE_CHECKING:
    from trunkline.config.schema import Config
    from trunkline.core.jobs import Job
    from trunkline.storage.sql.database import Database

job = click.argument("job_id", metavar="ID", help="The job's id, as `jobs list` shows it.")
HIDDEN = frozenset({"request", "answer", "binding", "price", "owner", "generation"})
FOR_TOOLS = frozenset({"body_hash", "link_base", "reservation_id", "price_version", "billed"})
"""Members that tell people nothing."""


@click.group()
def jobs() -> None:
    """Look at the jobs of image and video models, and stop them."""


@jobs.command(name="list")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, help="How many, at most.")
@click.option("--active", is_flag=True, help="Only those that are not done.")
@config_file
@data_dir
@as_json
def list_jobs(*, limit: int, active: bool, config: str | None, data_dir: str | None, as_json: bool) -> None:
    """List jobs, newest first."""
    from trunkline.core.jobs import UNFINISHED
    from trunkline.storage.sql.jobs import SqlJobs

    async def work(_config: "Config", database: "Database") -> "list[Job]":
        return await SqlJobs(database).page(states=sorted(UNFINISHED) if active else (), limit=limit)

    found = with_database(config, data_dir, work)
    if as_json:
        _write([_members(job) for job in found])
        return
    for job in found:
        click.echo(f"{job.id}  {job.state:14} {_how_far(job):24} {_ago(job.created_ms):>8}  {job.model}")
    if not found:
        click.echo("No job is under way." if active else "There is no job yet.", err=True)


@jobs.command()
@job
@config_file
@data_dir
@as_json
def show(job_id: str, *, config: str | None, data_dir: str | None, as_json: bool) -> None:
    """Show one job."""
    from trunkline.storage.sql.jobs import SqlJobs

    async def work(_config: "Config", database: "Database") -> "Job | None":
        return await SqlJobs(database).get(job_id)

    _tell(_found(with_database(config, data_dir, work), job_id), as_json=as_json)


@jobs.command()
@job
@config_file
@data_dir
@as_json
def cancel(job_id: str, *, config: str | None, data_dir: str | None, as_json: bool) -> None:
    """Stop a job.

    The gateway that runs it is asked to; one that has ended is shown as it is.
    """
    from trunkline.storage.sql.jobs import SqlJobs

    async def work(_config: "Config", database: "Database") -> "Job | None":
        return await SqlJobs(database).cancel(job_id)

    _tell(_found(with_database(config, data_dir, work), job_id), as_json=as_json)


def _found(job: "Job | None", job_id: str) -> "Job":
    if job is None:
        click.echo(f"trunkline: there is no job {job_id!r}", err=True)
        raise SystemExit(1)
    return job


def _tell(job: "Job", *, as_json: bool) -> None:
    members = _members(job)
    if as_json:
        _write(members)
        return
    for name, value in members.items():
        if name not in FOR_TOOLS and value not in (None, "", [], (), False, 0):
            click.echo(f"{name.removesuffix('_ms'):18} {_when(value) if name.endswith('_ms') else value}")


def _members(job: "Job") -> dict[str, object]:
    """Give what is of interest from outside, with the provider's parts: their tasks, states and errors."""
    import msgspec

    members: dict[str, object] = msgspec.to_builtins(job, builtin_types=(msgspec.Raw,))
    return {name: value for name, value in members.items() if name not in HIDDEN}


def _when(ms: object) -> str:
    """Write Unix milliseconds as UTC."""
    return f"{datetime.fromtimestamp(int(str(ms)) / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _how_far(job: "Job") -> str:
    if job.error_code:
        return job.error_code
    percent = f"{job.progress:.0f} %" if job.progress is not None else ""
    return " · ".join(filter(None, (percent, job.progress_text if job.finished_ms is None else "")))


def _ago(ms: int) -> str:
    passed_s = max(0, time.time_ns() // 1_000_000_000 - ms // 1000)
    for unit, seconds in (("d", 86400), ("h", 3600), ("min", 60)):
        if passed_s >= seconds:
            return f"{passed_s // seconds} {unit}"
    return f"{passed_s} s"


def _write(value: object) -> None:
    import msgspec

    click.echo(msgspec.json.encode(value).decode())
