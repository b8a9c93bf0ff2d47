"""A call for embeddings: forwarded to an OpenAI-compatible target, with fallback; settled once."""

import asyncio
import time

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from trunkline.calls.chat import Targets
from trunkline.calls.gate import Admitted
from trunkline.calls.meter import Settlement, Tally
from trunkline.calls.upstreams import Upstreams, retry_after
from trunkline.core.caller import Caller
from trunkline.core.chat import ChatRequest, UpstreamRequest
from trunkline.core.errors import GatewayError
from trunkline.core.events import Usage
from trunkline.core.money import EndReason, usd
from trunkline.core.ports import HttpError
from trunkline.core.route import Route
from trunkline.policy.tokens import count_texts
from trunkline.routing.fallback import judge
from trunkline.routing.order import Attempt, following
from trunkline.wire.error_body import read_error_body
from trunkline.wire.usage import read_usage

ANSWER_BYTES = 64 * 1024 * 1024
PATH = "/v1/embeddings"
RETRY_AFTER = "retry-after"


class EmbeddingCall:
    """One call. `answer` once; `settle` always, at its end."""

    def __init__(  # noqa: PLR0913, PLR0917 - what a call is made of
        self,
        upstreams: Upstreams,
        targets: Targets,
        route: Route,
        request: ChatRequest,
        caller: Caller,
        admitted: Admitted,
    ) -> None:
        self.asked: Attempt | None = None
        self.attempts = 0
        self._upstreams = upstreams
        self._targets = targets
        self._route = route
        self._request = request
        self._caller = caller
        self._admitted = admitted
        self._usage: Usage | None = None
        self._estimated = False
        self._started_ms = time.time_ns() // 1_000_000

    async def answer(self) -> bytes:
        """Ask the route's targets in turn; give the answer's body. Raises GatewayError when none answers."""
        left, health = self._targets.plan(self._route), self._targets.health
        while True:
            self.asked = asked = left.pop(0)
            self.attempts += 1
            health.began(asked.key, time.monotonic())
            try:
                answer = self._read(await self._ask(asked))
            except GatewayError as error:
                failure = judge(error.code, error.status, float(dict(error.headers).get(RETRY_AFTER, 0)) or None)
                health.failed(asked.key, time.monotonic(), failure)
                left = following(left, asked, failure)
                if not left:
                    raise
            except BaseException:
                health.left(asked.key)
                raise
            else:
                health.succeeded(asked.key, time.monotonic())
                return answer

    def cost_usd(self) -> float | None:
        """Give what the answer costs; None: no price is known."""
        if self.asked is None or self._usage is None:
            return 0.0
        cost = self._admitted.cost(self.asked.item, self._usage, Tally(self._started_ms, 0, self._estimated))
        return None if cost is None else usd(cost)

    def settle(self, end: EndReason, error: GatewayError | None = None) -> None:
        """End the call."""
        if end == "cancelled" and self.asked is not None and self._usage is None:  # the provider has read the request
            self._count()
        self._admitted.settle(
            Settlement(
                request=self._request,
                caller=self._caller,
                target=self.asked.item if self.asked else None,
                usage=self._usage or Usage(),
                estimated=self._estimated,
                end_reason=end,
                error_code=error.code if error else "",
                status=error.status if error else 200,
                attempts=self.attempts,
                started_ms=self._started_ms,
                ended_ms=time.time_ns() // 1_000_000,
                first_event_ms=None,
                chunks=0,
                media=0,
                repairs={},
                credential=self.asked.key[2] if self.asked else "",
                kind="embedding",
                path=PATH,
            )
        )

    async def _ask(self, asked: Attempt) -> bytes:
        fields = {**self._request.fields, "model": Raw(msgspec.json.encode(asked.item.target.model))}
        times = self._route.settings.timeouts
        try:
            async with asyncio.timeout(times.first_event_s):
                upstream = UpstreamRequest("/embeddings", msgspec.json.encode(fields))
                response = await self._upstreams.open(asked, upstream, connect_s=times.connect_s)
                try:
                    body = await response.body(ANSWER_BYTES)
                finally:
                    await response.aclose()
        except TimeoutError:
            told = f"the provider did not answer within {times.first_event_s:g} s"
            raise GatewayError("upstream_timeout", told) from None
        except HttpError as error:
            raise GatewayError("upstream_unavailable", f"the provider could not be reached: {error}") from None
        if response.status >= 400:
            read = read_error_body(response.status, body, retry_after(response.headers))
            wait = ((RETRY_AFTER, f"{read.retry_after_s:g}"),) if read.retry_after_s else ()
            raise GatewayError(
                read.code, read.message, status=read.status, type=read.type, param=read.param, headers=wait
            )
        return body

    def _read(self, body: bytes) -> bytes:
        """Take the usage out of an answer, and put the name that was asked for into it."""
        try:
            answer = msgspec.json.decode(body, type=dict[str, Raw])
        except msgspec.DecodeError:
            raise GatewayError("upstream_malformed", "the provider's answer is no JSON object") from None
        self._usage = read_usage(msgspec.json.decode(answer["usage"])) if "usage" in answer else None
        if self._usage is None:
            self._count()
        elif not self._usage.prompt_tokens:  # all that was told is a total, which is the input
            self._usage = replace(self._usage, prompt_tokens=self._usage.total_tokens, completion_tokens=0)
        answer["model"] = Raw(msgspec.json.encode(self._request.model))
        return msgspec.json.encode(answer)

    def _count(self) -> None:
        """Count the input ourselves."""
        prompt = count_texts(msgspec.json.decode(self._request.fields["input"]))
        self._usage, self._estimated = Usage(prompt_tokens=prompt, total_tokens=prompt), True
