"""Calls for pictures and films: admitted, bound to a target and a price, and begun as one durable job each."""

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from trunkline.calls.chat import Targets
from trunkline.calls.job_accounts import Account, JobAccounts
from trunkline.calls.media_inputs import MediaInputs
from trunkline.calls.unbroken import unbroken
from trunkline.core.binding import bind
from trunkline.core.caller import Caller
from trunkline.core.dialect import MediaDialect
from trunkline.core.errors import GatewayError
from trunkline.core.jobs import Idempotency, Job, OnDisconnect
from trunkline.core.media import MediaInput, MediaRequest
from trunkline.core.ports import Jobs
from trunkline.core.rates import RateLimiter
from trunkline.core.route import Route, RouteTarget
from trunkline.core.state import JobStore
from trunkline.ingress.media_fit import hold_against
from trunkline.policy.key_rules import check_model
from trunkline.policy.rate import refusal
from trunkline.routing.order import Attempt

JOINED_MS = 15 * 60 * 1000
"""A client library's retry joins a job that was made so long ago, at most."""


NOT_CALLED = (
    "`callback_url` names an address that is not public; the operator can allow those (`[media] allow_private`)."
)


class MediaAsk(Struct, frozen=True, kw_only=True):
    """What a client wants made, and how it wants to be told."""

    read: Callable[[RouteTarget], MediaRequest]
    """Reads the client's words for one target. Raises GatewayError (400) for what that cannot give."""
    route: Route
    caller: Caller
    path: str
    """Of the endpoint."""
    body_hash: str
    answer: Raw
    """JSON of `calls.media_answer.Telling`."""
    media_style: str
    picture: str = "messages"
    """Where pictures to go by stand, for errors."""
    callback_url: str = ""


class MediaCalls:
    """Starts jobs. Methods raise GatewayError, and StorageError as the stores."""

    def __init__(  # noqa: PLR0913, PLR0917 - what a job's beginning is made of
        self,
        jobs: Jobs,
        store: JobStore,
        targets: Targets,
        accounts: JobAccounts,
        rates: RateLimiter,
        inputs: MediaInputs,
        dialects: Mapping[str, MediaDialect],
        uncalled: Callable[[str], bool],
    ) -> None:
        """`uncalled` says of a callback's URL that it would never be called."""
        self._jobs = jobs
        self._store = store
        self._targets = targets
        self._accounts = accounts
        self._rates = rates
        self._inputs = inputs
        self._dialects = dialects
        self._uncalled = uncalled

    async def start(self, ask: MediaAsk) -> Job:
        """Begin a job, or join the one that this call repeats.

        Raises GatewayError: `model_not_allowed`, `invalid_value`, `rate_limit_exceeded`, `budget_exceeded`,
        `idempotency_conflict`.
        """
        check_model(ask.caller.key, ask.route.name)
        job_id = f"{ask.route.kind}_{secrets.token_hex(12)}"
        idempotency = _idempotency(ask, job_id)
        if (former := await self._joined(ask, idempotency)) is not None:
            return former
        if ask.callback_url and self._uncalled(ask.callback_url):
            raise GatewayError("invalid_value", NOT_CALLED, param="callback_url")
        attempt, request = await self._bind(ask)
        await self._take(ask, request)
        account = await self._accounts.open(ask.caller.key, request, attempt.item, job_id)
        job = replace(
            _job(ask, attempt, request, job_id),
            reservation_id=account.reservation_id,
            price=account.price,
            price_version=account.price_version,
        )
        try:
            return await unbroken(self._stored(job, idempotency, account))
        except asyncio.CancelledError:
            if job.on_disconnect == "cancel":
                await self._jobs.cancel(job.id)
            raise

    async def _stored(self, job: Job, idempotency: Idempotency | None, account: Account) -> Job:
        """Begin a job; should it fail, the sweep ends its reservation."""
        job, new = await self._jobs.start(job, idempotency)
        if not new:
            await self._accounts.drop(account)
        return job

    async def _joined(self, ask: MediaAsk, idempotency: Idempotency | None) -> Job | None:
        """Find the job that this call repeats: by its idempotency key, or as a client library's retry."""
        if idempotency is not None:
            return await self._store.joined(idempotency)
        if not ask.caller.retry_count:
            return None
        since_ms = time.time_ns() // 1_000_000 - JOINED_MS
        return await self._store.repeated(ask.caller.key.id, ask.path, ask.body_hash, since_ms)

    async def _bind(self, ask: MediaAsk) -> tuple[Attempt, MediaRequest]:
        """Choose the first target that can take the request; raises the first one's refusal when none can."""
        refused: GatewayError | None = None
        held: dict[tuple[MediaInput, bool], MediaInput | None] = {}
        for attempt in self._targets.plan(ask.route):
            dialect = self._dialects.get(attempt.item.target.dialect)
            if dialect is None or attempt.item.target.side == "chat":
                continue
            try:
                request = hold_against(ask.read(attempt.item), dialect.lacks)
                for one in request.inputs:
                    place = one, dialect.takes_links
                    if place not in held:
                        held[place] = await self._hold(one, ask, links=dialect.takes_links)
                inputs = [held[one, dialect.takes_links] for one in request.inputs]
                request = replace(request, inputs=tuple(one for one in inputs if one is not None))
                dialect.submit(_tried(request), attempt.item.target, "tried")
            except GatewayError as error:
                refused = refused or error
            else:
                return attempt, request
        raise refused or GatewayError("upstream_unavailable", f"No target of {ask.route.name!r} makes media.")

    async def _hold(self, one: MediaInput, ask: MediaAsk, *, links: bool) -> MediaInput | None:
        """Put a picture by; None: it was shown in the conversation, and is gone by now."""
        try:
            return await self._inputs.hold(one, ask.caller, ask.picture, links=links)
        except GatewayError as error:
            if one.former and error.code == "invalid_value":
                return None
            raise

    async def _take(self, ask: MediaAsk, request: MediaRequest) -> None:
        """Count the call in its key's rates."""
        if not ask.caller.key.rates:
            self._rates.check(ask.caller.key)
            return
        verdict, passed = await self._rates.take(ask.caller.key, tokens=0, images=request.n, streams=0)
        if verdict.short is not None:
            raise refusal(verdict, images=request.n)
        self._rates.end(passed, 0)


def _job(ask: MediaAsk, attempt: Attempt, request: MediaRequest, job_id: str) -> Job:
    caller, target = ask.caller, attempt.item.target
    wanted = caller.on_disconnect or ask.route.settings.on_disconnect or "continue"
    on_disconnect: OnDisconnect = "cancel" if wanted == "cancel" else "continue"
    return Job(
        id=job_id,
        kind=request.kind,
        key_id=caller.key.id,
        group_id=caller.key.group_id,
        request_id=caller.request_id,
        route=ask.path,
        model=ask.route.name,
        request=Raw(msgspec.json.encode(request)),
        body_hash=ask.body_hash,
        stream_id=f"strm_{secrets.token_hex(12)}",
        link_base=caller.link_base,
        media_style=ask.media_style,
        answer=ask.answer,
        on_disconnect=on_disconnect,
        provider=target.provider,
        upstream_model=target.model,
        credential_id=attempt.credential.name if attempt.credential else "",
        binding=bind(target, request.n, attempt.item.facts.max_n),
        callback_url=ask.callback_url,
    )


def _idempotency(ask: MediaAsk, job_id: str) -> Idempotency | None:
    if not ask.caller.idempotency_key:
        return None
    return Idempotency(
        key_id=ask.caller.key.id,
        route=ask.path,
        name=ask.caller.idempotency_key,
        body_hash=ask.body_hash,
        job_id=job_id,
    )


def _tried(request: MediaRequest) -> MediaRequest:
    """Give the request as a dialect may see it, for a try: a picture's bytes are stood for by one."""
    inputs = (replace(one, data=b"\0") if one.sha256 else one for one in request.inputs)
    return replace(request, inputs=tuple(inputs))
