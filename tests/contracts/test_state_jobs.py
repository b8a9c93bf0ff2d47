"""Jobs: joined by idempotency, fenced by generation, claimed when their owner's lease is over."""

import asyncio

import pytest
from msgspec import Raw
from sqlalchemy import text

from trunkline.core.errors import GatewayError
from trunkline.core.jobs import Idempotency, Job, JobChanges, Unfinished
from trunkline.core.state import JobStore, Leases, StaleOwnerError
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.jobs import SqlJobs
from trunkline.storage.sql.leases import SqlLeases


@pytest.fixture
def jobs(database: Database) -> JobStore:
    return SqlJobs(database)


@pytest.fixture
def leases(database: Database) -> Leases:
    return SqlLeases(database)


def a_job(name: str = "job_1", **changes: object) -> Job:
    return Job(id=name, kind="video", **changes)  # type: ignore[arg-type]


def sent_with(name: str, job_id: str, body_hash: str = "h", key_id: str = "key_1") -> Idempotency:
    return Idempotency(key_id=key_id, route="/v1/videos", name=name, body_hash=body_hash, job_id=job_id)


async def test_a_job_comes_back_as_it_was_stored(jobs: JobStore) -> None:
    job = a_job(
        key_id="key_1",
        request=Raw(b'{"prompt":"caf\xc3\xa9 \\u0000"}'),
        binding=Raw(b'{"base_url":"http://x"}'),
        result=("vid_1", "cov_1"),
        progress=12.5,
        owner="a#1",
        callback_url="https://example.com",
    )
    stored, new = await jobs.add(job)
    assert new
    assert stored == await jobs.get("job_1")
    assert 0 < stored.created_ms <= stored.updated_ms
    kept = {name: getattr(stored, name) for name in job.__struct_fields__ if name not in {"created_ms", "updated_ms"}}
    for name, value in kept.items():
        assert value == getattr(job, name), name
    assert await jobs.get("job_2") is None


async def test_states_follow_the_table_and_leave_their_instants(jobs: JobStore) -> None:
    await jobs.add(a_job())
    with pytest.raises(ValueError, match="queued cannot become running"):
        await jobs.change("job_1", 1, JobChanges(state="running"))
    job = await jobs.change("job_1", 1, JobChanges(state="submitting", provider="p", credential_id="c"), durable=True)
    assert (job.state, job.provider, job.credential_id, job.running_ms) == ("submitting", "p", "c", None)
    assert job.submitting_ms is not None
    await jobs.change("job_1", 1, JobChanges(state="running", upstream_task_id="t"))
    await jobs.change("job_1", 1, JobChanges(progress=50.0))
    for _ in range(2):  # the answer to a commit may be lost
        await jobs.change("job_1", 1, JobChanges(state="storing"))
    job = await jobs.change("job_1", 1, JobChanges(state="completed", result=("vid_1",), cost_microusd=7))
    assert (job.upstream_task_id, job.progress, job.result, job.cost_microusd) == ("t", 50.0, ("vid_1",), 7)
    assert job.submitting_ms <= job.running_ms <= job.storing_ms <= job.finished_ms  # type: ignore[operator]
    assert await jobs.change("job_1", 1, JobChanges(state="completed", result=("vid_1",), cost_microusd=7)) == job
    with pytest.raises(ValueError, match="completed cannot become failed"):
        await jobs.change("job_1", 1, JobChanges(state="failed"))


async def test_an_idempotency_key_joins_the_first_job(jobs: JobStore) -> None:
    first, _ = await jobs.add(a_job("job_1", key_id="key_1"), sent_with("i", "job_1"))
    again, new = await jobs.add(a_job("job_2", key_id="key_1"), sent_with("i", "job_2"))
    assert (again, new) == (first, False)
    assert await jobs.joined(sent_with("i", "job_2")) == first
    assert await jobs.joined(sent_with("another", "job_2")) is None
    other, new = await jobs.add(a_job("job_3", key_id="key_2"), sent_with("i", "job_3", key_id="key_2"))
    assert (other.id, new) == ("job_3", True)
    with pytest.raises(GatewayError) as error:
        await jobs.add(a_job("job_4", key_id="key_1"), sent_with("i", "job_4", body_hash="other"))
    assert (error.value.code, error.value.status) == ("idempotency_conflict", 409)
    assert await jobs.get("job_2") is await jobs.get("job_4") is None


async def test_of_many_calls_with_one_idempotency_key_one_starts_a_job(jobs: JobStore) -> None:
    added = await asyncio.gather(*(jobs.add(a_job(f"job_{n}"), sent_with("i", f"job_{n}")) for n in range(20)))
    assert sum(new for _, new in added) == 1
    assert len({job.id for job, _ in added}) == 1


async def test_a_deleted_job_frees_its_idempotency_key(jobs: JobStore) -> None:
    await jobs.add(a_job("job_1"), sent_with("i", "job_1"))
    assert await jobs.delete("job_1") is False
    await jobs.change("job_1", 1, JobChanges(state="cancelled"))
    assert await jobs.delete("job_1") is True
    assert await jobs.get("job_1") is None
    job, new = await jobs.add(a_job("job_2"), sent_with("i", "job_2"))
    assert (job.id, new) == ("job_2", True)


async def test_a_repeated_body_finds_its_job(jobs: JobStore) -> None:
    job, _ = await jobs.add(a_job(key_id="key_1", route="/v1/videos", body_hash="h"))
    assert await jobs.repeated("key_1", "/v1/videos", "h", job.created_ms) == job
    assert await jobs.repeated("key_1", "/v1/videos", "h", job.created_ms + 1) is None
    assert await jobs.repeated("key_2", "/v1/videos", "h", 0) is None
    assert await jobs.repeated("key_1", "/v1/images", "h", 0) is None


async def test_a_dead_owners_jobs_are_claimed_once_and_its_writes_refused(jobs: JobStore, leases: Leases) -> None:
    dead, alive = await leases.acquire("a", 0.05), await leases.acquire("b", 60)
    for n in range(10):
        await jobs.add(a_job(f"job_{n}", owner=dead))
    await jobs.add(a_job("job_mine", owner=alive))
    await jobs.add(a_job("job_done", owner=dead))
    await jobs.change("job_done", 1, JobChanges(state="failed"))
    await asyncio.sleep(0.1)
    assert await leases.renew(dead, 60) is False
    assert await jobs.look(alive) == Unfinished({"job_mine": False}, orphaned=True, some=True)
    claims = await asyncio.gather(*(jobs.claim(alive, limit=3) for _ in range(8)))
    claimed = [job for claim in claims for job in claim]
    assert sorted(job.id for job in claimed) == sorted(f"job_{n}" for n in range(10))
    assert {(job.owner, job.generation) for job in claimed} == {(alive, 2)}
    seen = await jobs.look(alive)
    assert (len(seen.owned), seen.orphaned) == (11, False)
    with pytest.raises(StaleOwnerError):
        await jobs.change("job_1", 1, JobChanges(progress=99.0))
    assert (await jobs.change("job_1", 2, JobChanges(progress=1.0))).progress == 1.0


async def test_a_new_life_under_the_same_name_claims_its_own_jobs_at_once(jobs: JobStore, leases: Leases) -> None:
    former = await leases.acquire("a", 60)
    await jobs.add(a_job(owner=former))
    holder = await leases.acquire("a", 60)
    assert holder != former
    assert [job.id for job in await jobs.claim(holder)] == ["job_1"]
    assert await leases.renew(former, 60) is False
    assert [lease.holder for lease in await leases.alive()] == [holder]


async def test_a_lease_of_before_the_clock_was_set_back_is_over(
    jobs: JobStore, leases: Leases, database: Database
) -> None:
    dead, alive = await leases.acquire("a", 60), await leases.acquire("b", 60)
    await jobs.add(a_job(owner=dead))
    async with database.write() as connection:
        await connection.execute(text("UPDATE leases SET until_ms = until_ms + 10800000 WHERE name = 'a'"))
    assert [lease.holder for lease in await leases.alive()] == [alive]
    assert [job.id for job in await jobs.claim(alive)] == ["job_1"]
    assert await leases.renew(dead, 60) is False  # if it lives, it begins anew


async def test_a_graceful_owner_gives_its_jobs_up(jobs: JobStore, leases: Leases) -> None:
    one, other = await leases.acquire("a", 60), await leases.acquire("b", 60)
    await jobs.add(a_job(owner=one))
    assert await jobs.claim(other) == []
    assert await jobs.look(other) == Unfinished({}, orphaned=False, some=True)
    assert await jobs.give_up(one) == 1
    assert (await jobs.look(other)).orphaned
    await leases.release(one)
    assert [job.id for job in await jobs.claim(other)] == ["job_1"]


async def test_cancelling_asks_the_owner_and_leaves_ended_jobs(jobs: JobStore) -> None:
    await jobs.add(a_job("job_1"))
    await jobs.add(a_job("job_2"))
    await jobs.change("job_2", 1, JobChanges(state="failed"))
    first, second = await jobs.cancel("job_1"), await jobs.cancel("job_2")
    assert first is not None
    assert second is not None
    assert (first.cancel_requested, second.cancel_requested) == (True, False)
    await jobs.add(a_job("job_4"))
    assert (await jobs.look(first.owner)).owned == {"job_1": True, "job_4": False}
    assert await jobs.cancel("job_3") is None


async def test_pages_go_on_after_the_last_one_seen(jobs: JobStore) -> None:
    for n in range(7):
        await jobs.add(a_job(f"job_{n}", key_id="key_1" if n % 2 else "key_2"))
    await jobs.change("job_3", 1, JobChanges(state="failed"))
    newest = [job.id for job in await jobs.page(limit=3)]
    rest = [job.id for job in await jobs.page(limit=10, after=newest[-1])]
    oldest_first = [job.id for job in await jobs.page(limit=10, ascending=True)]
    assert newest + rest == oldest_first[::-1]
    assert len(oldest_first) == 7
    assert {job.id for job in await jobs.page(key_id="key_1")} == {"job_1", "job_3", "job_5"}
    assert [job.id for job in await jobs.page(states=["failed", "completed"], kind="video")] == ["job_3"]
    assert await jobs.page(kind="image") == []
    assert await jobs.count() == {"queued": 6, "submitting": 0, "running": 0, "storing": 0}


async def test_what_a_job_usually_takes_is_learnt_from_completed_ones(jobs: JobStore) -> None:
    for number, pause_s in enumerate((0.0, 0.01, 0.2)):
        await jobs.add(a_job(f"job_{number}", provider="p", upstream_model="m"))
        for changes in ("submitting", "running", "storing", "completed"):
            await asyncio.sleep(pause_s)
            await jobs.change(f"job_{number}", 1, JobChanges(state=changes))
    assert 0.02 <= await jobs.usual_s("p", "m") < 60
    assert await jobs.usual_s("p", "other") == 0


async def test_a_due_callback_is_taken_by_one_process(jobs: JobStore) -> None:
    await jobs.add(a_job(callback_url="https://example.com", callback_state="pending", callback_due_ms=1))
    taken = await asyncio.gather(*(jobs.due_callbacks() for _ in range(5)))
    assert [job.id for batch in taken for job in batch] == ["job_1"]
    await jobs.called_back("job_1", "pending", 0.0)
    assert [job.callback_attempts for job in await jobs.due_callbacks()] == [1]
    await jobs.called_back("job_1", "sent")
    job = await jobs.get("job_1")
    assert job is not None
    assert (job.callback_state, job.callback_attempts, job.callback_due_ms) == ("sent", 2, None)


async def test_expired_jobs_are_pruned_when_they_have_ended(jobs: JobStore) -> None:
    await jobs.add(a_job("job_1", expires_ms=1), sent_with("i", "job_1"))
    await jobs.add(a_job("job_2", expires_ms=1))
    await jobs.change("job_1", 1, JobChanges(state="failed"))
    assert await jobs.prune() == 1
    assert await jobs.get("job_1") is None
    assert await jobs.get("job_2") is not None
