"""The ports of stored state: keys, money, jobs, streams, media index, leases, messages between processes.

Every method raises `StorageError` when the database cannot be reached or written (a client hears
`storage_unavailable`); each is one transaction. Instants are Unix milliseconds, by the database's clock where the store
itself sets them (`created_ms`, `updated_ms`, …).
"""

from collections.abc import Generator, Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from trunkline.core.jobs import Idempotency, Job, JobChanges, StoredStream, Unfinished
from trunkline.core.keys import GroupChanges, Key, KeyChanges, KeyGroup
from trunkline.core.media import FileRecord, MediaRecord
from trunkline.core.money import LedgerRow, Spend


class StorageError(Exception):
    """The database is away, full or read-only; nothing was written."""


class UnstorableError(ValueError):
    """The database will never take this: a number beyond 64 bits, text that is no text. Nothing was written."""


class StaleOwnerError(Exception):
    """Another process has claimed this job or stream in the meantime (or it is gone): stop working on it."""


class NameTakenError(ValueError):
    """A group of that name exists already."""


class KeyStore(Protocol):
    """Virtual keys and groups. Secrets never come here, only their digests (32 bytes, HMAC-SHA-256)."""

    async def add_key(self, key_id: str, digest: bytes, prefix: str, settings: KeyChanges) -> Key:
        """Store a new key; `settings.name` is set. Raises LookupError when its group is unknown."""

    async def find_key(self, digest: bytes) -> Key | None:
        """Give the key of this digest, whatever its state."""

    async def get_key(self, key_id: str) -> Key | None:
        """Give one key."""

    async def list_keys(
        self, *, group_id: str | None = None, state: str | None = None, after: str = "", limit: int = 50
    ) -> list[Key]:
        """List keys, newest first; `after` is the id of the last one seen. `state` may be `expired`: active no more."""

    async def change_key(self, key_id: str, changes: KeyChanges) -> Key | None:
        """Change what is set in `changes`; None: no such key.

        Raises ValueError when a revoked key is to be anything else, LookupError for an unknown group.
        """

    async def rotate_key(self, key_id: str, digest: bytes, prefix: str) -> Key | None:
        """Give the key another secret; the former one stops at once. Raises ValueError for a revoked key."""

    async def add_group(self, group_id: str, settings: GroupChanges) -> KeyGroup:
        """Store a new group; `settings.name` is set. Raises NameTakenError."""

    async def get_group(self, group_id: str) -> KeyGroup | None:
        """Give one group."""

    async def list_groups(self) -> list[tuple[KeyGroup, int]]:
        """List all groups, newest first, each with the number of its keys."""

    async def change_group(self, group_id: str, changes: GroupChanges) -> KeyGroup | None:
        """Change what is set in `changes`; None: no such group. Raises NameTakenError."""

    async def delete_group(self, group_id: str) -> bool:
        """Take the group away; its keys stay, without a group."""

    async def keys_version(self) -> int:
        """Give a number that every change of a key or group raises: what was cached under another is out of date."""


class Ask(Struct, frozen=True, kw_only=True):
    """What a process wants to hold of the budgets of a key (and its group) on one day.

    `must` is in use by running calls and by calls not yet booked, and is held whatever happens; `demand` is what
    waiting calls want on top.
    """

    reservation_id: str
    holder: str
    key: Key
    day: str
    must: int
    demand: int


class Grant(Struct, frozen=True):
    """What the budgets gave: `free` micro-dollars beyond what must be held, more than the demand where there is plenty.

    Below zero: what must be held is more than the budgets have. When it is less than the demand, `short` says which
    budget ends, and `held` is what processes hold of it for their calls. `elsewhere` is the part of that which comes
    back: what they do not use (within a second), and all that is held by one whose lease was not renewed.
    """

    free: int
    short: str = ""
    elsewhere: int = 0
    held: int = 0


class Kept(Struct, frozen=True):
    """How large an allowance is to be from now on, and which part of it no call uses. 0: it is forgotten."""

    amount: int
    spare: int = 0


class MoneyStore(Protocol):
    """Budgets and the ledger. What is reserved of an owner's budget is always the sum of its open reservations."""

    async def resize(self, ask: Ask) -> Grant:
        """Make a process's allowance (new, if need be) as large as asked, or as the budgets allow (`policy.budget`).

        Raises StaleOwnerError when the allowance was swept: the process's lease was over.
        """

    async def book(self, rows: Sequence[LedgerRow], allowances: Mapping[str, Kept]) -> None:
        """Write ledger rows and their costs, and set allowances, by id.

        May be repeated: rows booked before are left out, and allowances are absolute. A swept one stays swept.
        Raises UnstorableError when a row is at fault.
        """

    async def reserve(self, reservation_id: str, key: Key, day: str, amount: int, *, job_id: str) -> Grant:
        """Set money aside for a job, until it is settled or released; `free` is less than the amount: not reserved."""

    async def settle(self, reservation_id: str, row: LedgerRow) -> bool:
        """End a job's reservation, book its row and mark the job as billed; False, and nothing done: it had ended."""

    async def release(self, reservation_id: str) -> bool:
        """End a job's reservation without a cost; False: it had ended."""

    async def sweep(self) -> int:
        """End the reservations of processes whose lease is over and of jobs that are no more; gives how many.

        Forgets reservations that ended a week ago.
        """

    async def spend(self, owner_id: str, periods: Sequence[str]) -> list[Spend]:
        """Give what a key or group has spent, and what its running calls and jobs hold (zeros where nothing was)."""

    async def rows(self, *, key_id: str | None = None, after: str = "", limit: int = 50) -> list[LedgerRow]:
        """List ledger rows, newest first; `after` is the id of the last one seen."""

    async def prune_ledger(self, before_ms: int) -> int:
        """Delete rows of calls that began earlier; what was spent stays. Gives how many."""


class Journal(Protocol):
    """Ledger rows on the local disk until the database has them. Methods raise OSError when the disk is full."""

    def write(self, rows: list[LedgerRow]) -> None:
        """Add rows to the open segment: all of them, or none."""

    def cut(self) -> str | None:
        """End the open segment and give its name; None: nothing was written."""

    def read(self, segment: str) -> list[LedgerRow]:
        """Give the rows of a segment; lines that are none are put aside in `rejected.jsonl`."""

    def drop(self, segment: str) -> None:
        """Forget a segment: its rows are booked."""

    def reject(self, row: LedgerRow) -> None:
        """Put aside a row that the database will never take, in `rejected.jsonl`, for a person to look at."""

    def left(self) -> Generator[str]:
        """Give the segments of processes that are dead; they are no other's while iterating."""

    def close(self) -> None:
        """Let go; segments that are still there are found by the next process."""


class JobStore(Protocol):
    """Jobs: the truth of the API. A write names its claim's generation; a stale one raises StaleOwnerError."""

    async def add(self, job: Job, idempotency: Idempotency | None = None) -> tuple[Job, bool]:
        """Store a new job with its stream, or give the one that the idempotency key stands for; True: it is new.

        Raises GatewayError `idempotency_conflict` when that key was used with another body.
        """

    async def joined(self, idempotency: Idempotency) -> Job | None:
        """Give the job that the key stands for already. Raises GatewayError `idempotency_conflict`."""

    async def get(self, job_id: str) -> Job | None:
        """Give one job, whoever asks: the caller compares `key_id`."""

    async def page(  # noqa: PLR0913 - the filters of the API
        self,
        *,
        key_id: str | None = None,
        kind: str | None = None,
        states: Sequence[str] = (),
        after: str = "",
        limit: int = 20,
        ascending: bool = False,
    ) -> list[Job]:
        """List jobs by creation, newest first unless `ascending`; `after` is the id of the last one seen."""

    async def change(self, job_id: str, generation: int, changes: JobChanges, *, durable: bool = False) -> Job:
        """Change what is set in `changes`, and give the job as it is now; a state may be repeated by who wrote it.

        `durable`: on the disk, not only in the log, when this returns (for the intent to submit).
        Raises StaleOwnerError, and ValueError for a state that may not follow.
        """

    async def cancel(self, job_id: str) -> Job | None:
        """Ask the owner to cancel: sets `cancel_requested`. A job that has ended is given as it is; None: unknown."""

    async def delete(self, job_id: str) -> bool:
        """Delete a job that has ended; False: unknown, or it has not."""

    async def claim(self, holder: str, *, limit: int = 100) -> list[Job]:
        """Take over unfinished jobs whose owner's lease is over, with their generation raised; oldest first."""

    async def look(self, holder: str) -> Unfinished:
        """Say which jobs have not ended, as far as it concerns this holder."""

    async def give_up(self, holder: str) -> int:
        """Let go of all unfinished jobs of this holder, so that others may claim them at once."""

    async def repeated(self, key_id: str, route: str, body_hash: str, since_ms: int) -> Job | None:
        """Give the newest job of the same key, route and body created since then."""

    async def usual_s(self, provider: str, upstream_model: str, *, limit: int = 20) -> float:
        """Give how long jobs of this model usually take, from submit to end: the middle of the latest; 0: not known."""

    async def count(self) -> dict[str, int]:
        """Count unfinished jobs by state."""

    async def due_callbacks(self, *, limit: int = 20) -> list[Job]:
        """Take jobs whose callback is due; each is put off by a minute, so that no other process sends it."""

    async def called_back(
        self, job_id: str, state: Literal["pending", "sent", "failed"], retry_after_s: float | None = None
    ) -> None:
        """Note how a callback went (one more attempt); the next is due after `retry_after_s`, None: never."""

    async def prune(self) -> int:
        """Delete finished jobs that have expired, and old idempotency keys; gives how many jobs."""


class StreamStore(Protocol):
    """Events of answers that can be taken up again, in order, by number from 1; bounded by their writer's limits."""

    async def open(self, stream: StoredStream, idempotency: Idempotency | None = None) -> tuple[StoredStream, bool]:
        """Store a new stream, or give the one that the idempotency key stands for; True: it is new.

        Raises GatewayError `idempotency_conflict` when that key was used with another body.
        """

    async def joined(self, idempotency: Idempotency) -> StoredStream | None:
        """Give the stream that the key stands for already. Raises GatewayError `idempotency_conflict`."""

    async def get(self, stream_id: str) -> StoredStream | None:
        """Give one stream, whoever asks: the caller compares `key_id`."""

    async def append(
        self, stream_id: str, generation: int, events: Sequence[bytes], *, max_bytes: int, before: int | None = None
    ) -> int:
        """Add events; the oldest go when all pass `max_bytes`. Gives the last number. Raises StaleOwnerError.

        `before` is the last number that the writer knows of: repeated after a lost answer, nothing is added twice.
        """

    async def read(self, stream_id: str, after: int, *, limit: int = 1000) -> list[tuple[int, bytes]]:
        """Give the events after this number."""

    async def end(
        self, stream_id: str, generation: int, state: Literal["ended", "failed"], expires_after_s: float
    ) -> None:
        """Say that no event follows, and how long those that were are kept. May be repeated. Raises StaleOwnerError."""

    async def cancel(self, stream_id: str) -> StoredStream | None:
        """Ask the writer to stop: sets `cancel_requested`."""

    async def to_cancel(self, holder: str) -> list[str]:
        """Give the ids of this holder's open streams that are asked to be stopped."""

    async def claim(self, stream_id: str, holder: str) -> StoredStream | None:
        """Take over an open stream, whoever wrote it; its generation is raised. None: unknown or ended."""

    async def orphans(self, *, limit: int = 100) -> list[StoredStream]:
        """Open streams without a job whose writer's lease is over: nobody will end them but who asks."""

    async def prune(self) -> int:
        """Delete expired streams with their events; gives how many."""


class MediaIndex(Protocol):
    """Which media and uploads there are; the bytes are elsewhere, under `storage_key`."""

    async def add(self, record: MediaRecord) -> MediaRecord:
        """Store a record, or give the one that has this id already."""

    async def get(self, media_id: str) -> MediaRecord | None:
        """Give one record."""

    async def page(
        self, *, key_id: str | None = None, kinds: Sequence[str] = (), after: str = "", limit: int = 50
    ) -> list[MediaRecord]:
        """List records, newest first; `after` is the id of the last one seen."""

    async def of_job(self, job_id: str) -> list[MediaRecord]:
        """Give a job's media, oldest first."""

    async def by_hash(self, sha256: str) -> MediaRecord | None:
        """Give some record of these bytes: the blob is there already."""

    async def totals(self) -> tuple[int, int]:
        """Count records and the bytes of their blobs, shared ones once."""

    async def delete(self, media_ids: Sequence[str]) -> list[str]:
        """Delete records; gives the storage keys that no record and no upload uses any longer."""

    async def expired(self, *, limit: int = 200) -> list[str]:
        """Give ids of records that have expired."""

    async def oldest(self, *, limit: int = 200) -> list[MediaRecord]:
        """Give the oldest records, to make room."""

    async def add_file(self, record: FileRecord) -> FileRecord:
        """Store an upload's record."""

    async def get_file(self, file_id: str) -> FileRecord | None:
        """Give one upload's record."""

    async def delete_files(self, file_ids: Sequence[str]) -> list[str]:
        """Delete uploads' records; gives the storage keys that no record and no upload uses any longer."""

    async def expired_files(self, *, limit: int = 200) -> list[str]:
        """Give ids of uploads that have expired."""


class Lease(Struct, frozen=True):
    """A process that is alive. `info` is JSON that it says of itself."""

    name: str
    holder: str
    started_ms: int
    until_ms: int
    info: str = "{}"


class Leases(Protocol):
    """Which processes are alive, by the database's clock."""

    async def acquire(self, name: str, ttl_s: float) -> str:
        """Begin a life under this name, ending any former one at once; gives its holder, `name#` and a random mark."""

    async def renew(self, holder: str, ttl_s: float, info: str | None = None) -> bool:
        """Prolong a life; False: it is over (expired, or begun anew by another): nothing is held any more."""

    async def release(self, holder: str) -> None:
        """End a life."""

    async def alive(self) -> list[Lease]:
        """List the living."""


class Signal(Struct, frozen=True):
    """A message to every process."""

    id: str
    topic: str
    body: str


class Signals(Protocol):
    """Messages between processes: seen by every living one within a second or so, at least once, kept for a minute."""

    async def send(self, topic: str, body: str) -> None:
        """Send a message to every process, this one included."""

    async def recent(self) -> list[Signal]:
        """Give the messages of the last minute; who reads remembers which ids it has seen."""
