import base64
import hashlib
import hmac

from job_tools import Rig, a_job
from raw_upstream import Peer, raw_upstream
from sqlalchemy import update

from trunkline.core.jobs import Job, JobChanges
from trunkline.jobs.callbacks import AGAIN_S, Callbacks
from trunkline.storage.sql.tables import jobs


class Receiver:
    """Answers as told, and remembers what it got."""

    def __init__(self, *statuses: str) -> None:
        self.statuses = list(statuses)
        self.got: list[tuple[dict[str, str], bytes]] = []

    async def __call__(self, peer: Peer) -> None:
        head, body = await peer.request()
        lines = (line.partition(": ") for line in head.split("\r\n")[1:] if line)
        self.got.append(({name.lower(): value for name, _, value in lines}, body))
        await peer.answer(b"", status=self.statuses.pop(0))


async def body(job: Job) -> bytes:
    return f'{{"id":"{job.id}","status":"{job.state}"}}'.encode()


async def ended(rig: Rig, url: str, name: str = "job_1") -> None:
    await rig.jobs.add(a_job(name, "http://x", {}, callback_url=url))
    await rig.jobs.change(name, 1, JobChanges(state="failed", callback_state="pending", callback_due_ms=1))


def callbacks(rig: Rig, *, public_only: bool = False) -> Callbacks:
    return Callbacks(rig.jobs, rig.client, body, lambda _: b"key", public_only=public_only)


async def due_now(rig: Rig) -> None:
    async with rig.database.write() as connection:
        await connection.execute(update(jobs).values(callback_due_ms=1).where(jobs.c.callback_due_ms.is_not(None)))


async def test_a_callback_is_signed_and_sent_once(rig: Rig) -> None:
    receiver = Receiver("204 No Content")
    async with raw_upstream(receiver) as upstream:
        await ended(rig, upstream.url + "/hook")
        assert await callbacks(rig).deliver() == 1
        assert await callbacks(rig).deliver() == 0
    [(headers, sent)] = receiver.got
    assert sent == b'{"id":"job_1","status":"failed"}'
    text = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + sent
    expected = base64.b64encode(hmac.new(b"key", text, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    job = await rig.jobs.get("job_1")
    assert job is not None
    assert (job.callback_state, job.callback_attempts) == ("sent", 1)


async def test_a_callback_that_is_not_received_is_tried_again_and_then_given_up(rig: Rig) -> None:
    tries = len(AGAIN_S) + 1
    receiver = Receiver(*["500 No"] * tries)
    async with raw_upstream(receiver) as upstream:
        await ended(rig, upstream.url + "/hook")
        for _ in range(tries):
            job = await rig.jobs.get("job_1")
            assert job is not None
            assert job.callback_state == "pending"
            assert await callbacks(rig).deliver() == 0
            assert await callbacks(rig).deliver() == 0  # not yet due
            await due_now(rig)
    job = await rig.jobs.get("job_1")
    assert job is not None
    assert (job.callback_state, job.callback_attempts, len(receiver.got)) == ("failed", tries, tries)


async def test_a_callback_that_cannot_be_made_keeps_no_other_back(rig: Rig) -> None:
    async def odd(job: Job) -> bytes:
        if job.id == "job_1":
            raise ValueError("odd")
        return await body(job)

    async with raw_upstream(Receiver("200 OK")) as upstream:
        for name in ("job_1", "job_2"):
            await ended(rig, upstream.url + "/hook", name)
        assert await Callbacks(rig.jobs, rig.client, odd, lambda _: b"key", public_only=False).deliver() == 1
    states = [job.callback_state for name in ("job_1", "job_2") if (job := await rig.jobs.get(name))]
    assert states == ["pending", "sent"]


async def test_a_callback_does_not_reach_private_addresses(rig: Rig) -> None:
    receiver = Receiver("200 OK")
    async with raw_upstream(receiver) as upstream:
        await ended(rig, upstream.url + "/hook")
        assert await callbacks(rig, public_only=True).deliver() == 0
    assert receiver.got == []
