"""Jobs: durable pieces of work, their states and what a stored stream is."""

from typing import Literal

from msgspec import UNSET, Raw, Struct, UnsetType

from trunkline.core.errors import UpstreamError
from trunkline.core.events import Usage
from trunkline.core.media import MediaRecord

JobState = Literal["queued", "submitting", "running", "storing", "completed", "failed", "cancelled", "submit_unknown"]
OnDisconnect = Literal["cancel", "continue"]

NEXT: dict[JobState, frozenset[JobState]] = {
    "queued": frozenset({"submitting", "failed", "cancelled"}),
    # An idempotent submit may be repeated; a synchronous provider answers it with the finished picture.
    "submitting": frozenset({"submitting", "running", "storing", "failed", "cancelled", "submit_unknown"}),
    "running": frozenset({"storing", "failed", "cancelled"}),
    "storing": frozenset({"completed", "failed", "cancelled"}),
    "completed": frozenset(),
    "failed": frozenset(),
    "cancelled": frozenset(),
    "submit_unknown": frozenset(),
}
"""Which state may follow which. `submit_unknown`: a crash inside a submit that is not idempotent."""

UNFINISHED: frozenset[JobState] = frozenset(state for state, following in NEXT.items() if following)
FINISHED: frozenset[JobState] = frozenset(NEXT) - UNFINISHED


class Job(Struct, frozen=True, kw_only=True):
    """A job as it is stored. Written only by its `owner`, under its `generation` (both change when it is claimed).

    `request`, `binding` and `price` are JSON that the job engine writes and reads: the media request; what else of the
    target must not change after the submit; the price it was bound to. `result` are ids in the media index.
    """

    id: str
    kind: Literal["image", "video"]
    state: JobState = "queued"
    owner: str = ""
    """The holder of a lease (`Leases.acquire`); whoever holds none is dead."""
    generation: int = 1
    key_id: str = ""
    group_id: str = ""
    request_id: str = ""
    route: str = ""
    model: str = ""
    request: Raw = Raw(b"{}")
    body_hash: str = ""
    """Hex SHA-256 of the client's body, for joining a repeated call."""
    stream_id: str = ""
    link_base: str = ""
    media_style: str = ""
    answer: Raw = Raw(b"{}")
    """JSON of the call that asked: how its client wants to be told (`calls.media_answer`)."""
    on_disconnect: OnDisconnect = "continue"
    cancel_requested: bool = False
    provider: str = ""
    upstream_model: str = ""
    credential_id: str = ""
    upstream_task_id: str = ""
    binding: Raw = Raw(b"{}")
    price: Raw = Raw(b"{}")
    price_version: str = ""
    reservation_id: str = ""
    progress: float | None = None
    progress_text: str = ""
    result: tuple[str, ...] = ()
    error_code: str = ""
    error_message: str = ""
    cost_microusd: int | None = None
    billed: bool = False
    callback_url: str = ""
    callback_state: Literal["", "pending", "sent", "failed"] = ""
    callback_attempts: int = 0
    callback_due_ms: int | None = None
    created_ms: int = 0
    updated_ms: int = 0
    submitting_ms: int | None = None
    running_ms: int | None = None
    storing_ms: int | None = None
    finished_ms: int | None = None
    deadline_ms: int | None = None
    expires_ms: int | None = None


class JobChanges(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What to change of a job; what is unset stays. The instants of the states are kept by the store."""

    state: JobState | UnsetType = UNSET
    stream_id: str | UnsetType = UNSET
    on_disconnect: OnDisconnect | UnsetType = UNSET
    provider: str | UnsetType = UNSET
    upstream_model: str | UnsetType = UNSET
    credential_id: str | UnsetType = UNSET
    upstream_task_id: str | UnsetType = UNSET
    binding: Raw | UnsetType = UNSET
    price: Raw | UnsetType = UNSET
    price_version: str | UnsetType = UNSET
    reservation_id: str | UnsetType = UNSET
    progress: float | UnsetType | None = UNSET
    progress_text: str | UnsetType = UNSET
    result: tuple[str, ...] | UnsetType = UNSET
    error_code: str | UnsetType = UNSET
    error_message: str | UnsetType = UNSET
    cost_microusd: int | UnsetType | None = UNSET
    callback_state: Literal["", "pending", "sent", "failed"] | UnsetType = UNSET
    callback_attempts: int | UnsetType = UNSET
    callback_due_ms: int | UnsetType | None = UNSET
    deadline_ms: int | UnsetType | None = UNSET
    expires_ms: int | UnsetType | None = UNSET


class Outcome(Struct, frozen=True, kw_only=True):
    """How a job ends, for its account."""

    state: JobState
    error_code: str = ""
    submitted: bool = False
    """The provider may have begun to work, and may bill."""
    media: tuple[MediaRecord, ...] = ()
    usage: Usage | None = None


class Partial(Struct, frozen=True):
    """A picture as far as it is drawn, kept for a day; `number` counts from 0."""

    media: MediaRecord
    number: int


class Finish(Struct, frozen=True):
    """A job's end. `media` in the job's order; `covers` by the id of their film."""

    job: Job
    media: tuple[MediaRecord, ...] = ()
    covers: dict[str, MediaRecord] = {}
    error: UpstreamError | None = None


class Unfinished(Struct, frozen=True):
    """The jobs that have not ended, as one holder sees them."""

    owned: dict[str, bool]
    """Its own by id, and whether they are asked to be cancelled."""
    orphaned: bool
    """There are some whose owner's lease is over."""
    some: bool
    """There are any, anybody's."""


class StoredStream(Struct, frozen=True, kw_only=True):
    """An answer that can be taken up again. Events `first_seq` … `last_seq` are kept; older ones were dropped."""

    id: str
    key_id: str = ""
    job_id: str = ""
    route: str = ""
    model: str = ""
    state: Literal["open", "ended", "failed"] = "open"
    owner: str = ""
    generation: int = 1
    first_seq: int = 1
    last_seq: int = 0
    bytes: int = 0
    cancel_requested: bool = False
    created_ms: int = 0
    updated_ms: int = 0
    ended_ms: int | None = None
    expires_ms: int | None = None


class Idempotency(Struct, frozen=True, kw_only=True):
    """An `Idempotency-Key` as a client sent it, with the hash of the body under it; kept for 24 hours."""

    key_id: str
    route: str
    name: str
    body_hash: str
    job_id: str = ""
    stream_id: str = ""
