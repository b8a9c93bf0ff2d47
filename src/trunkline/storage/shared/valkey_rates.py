"""Rates counted in Valkey (or Redis) by all replicas: `core.rates.RateLimiter`, one script a call, by its clock.

A window is a hash of slots with their counts and total (`t`), beside a sorted set of the slots. Streams are counted by
process, and those of a process that has not been heard of for `ALIVE_S` do not count.
"""

import asyncio
import logging
import secrets
from functools import partial
from typing import Any

from trunkline.core.errors import GatewayError
from trunkline.core.keys import Key
from trunkline.core.rates import Left, Passed, RateKind, Verdict
from trunkline.policy.rate import SLOT_S, WINDOW
from trunkline.storage.shared.valkey import connect

ALIVE_S = 10
BEAT_S = 1.0
KINDS: tuple[RateKind, ...] = ("requests", "tokens", "images")
log = logging.getLogger(__name__)

COMMON = f"""
local time = redis.call('TIME')
local slot = time[1] * 10 + math.floor(time[2] / 100000)
local function forget(w)
  local old = redis.call('ZRANGEBYSCORE', w .. ':z', '-inf', '(' .. (slot - {WINDOW}))
  for _, s in ipairs(old) do
    redis.call('HINCRBY', w, 't', -tonumber(redis.call('HGET', w, s) or '0'))
    redis.call('HDEL', w, s)
    redis.call('ZREM', w .. ':z', s)
  end
end
local function add(w, at, n)
  if n == 0 then return end
  redis.call('HINCRBY', w, at, n)
  redis.call('HINCRBY', w, 't', n)
  redis.call('ZADD', w .. ':z', at, at)
  redis.call('EXPIRE', w, 120)
  redis.call('EXPIRE', w .. ':z', 120)
end
"""

# KEYS: windows of requests, tokens, images; streams. ARGV: the four limits (-1: none), the four amounts, the process.
TAKE = (
    (
        COMMON
        + """
local limits, asked, totals = {}, {}, {}
for i = 1, 4 do limits[i], asked[i] = tonumber(ARGV[i]), tonumber(ARGV[4 + i]) end
if limits[4] >= 0 and asked[4] > 0 then
  local open = 0
  local all = redis.call('HGETALL', KEYS[4])
  for i = 1, #all, 2 do
    if redis.call('EXISTS', 'trunkline:alive:' .. all[i]) == 1 then open = open + tonumber(all[i + 1])
    else redis.call('HDEL', KEYS[4], all[i]) end
  end
  if open + asked[4] > limits[4] then return {4, 10, slot} end
end
for i = 1, 3 do
  if limits[i] >= 0 then
    forget(KEYS[i])
    totals[i] = tonumber(redis.call('HGET', KEYS[i], 't') or '0')
    if asked[i] > 0 and totals[i] + asked[i] > limits[i] then
      local surplus, wait = totals[i] + asked[i] - limits[i], WINDOW
      for _, s in ipairs(redis.call('ZRANGE', KEYS[i] .. ':z', 0, -1)) do
        surplus = surplus - tonumber(redis.call('HGET', KEYS[i], s))
        if surplus <= 0 then wait = s + WINDOW + 1 - slot; break end
      end
      return {i, wait, slot}
    end
  end
end
local answer = {0, 0, slot}
for i = 1, 3 do
  local left, reset = -1, 0
  if limits[i] >= 0 then
    add(KEYS[i], slot, asked[i])
    left = limits[i] - totals[i] - asked[i]
    local last = redis.call('ZRANGE', KEYS[i] .. ':z', -1, -1)[1]
    if last then reset = last + WINDOW + 1 - slot end
  end
  answer[#answer + 1] = left
  answer[#answer + 1] = reset
end
if asked[4] > 0 then
  redis.call('HINCRBY', KEYS[4], ARGV[9], asked[4])
  redis.call('EXPIRE', KEYS[4], 86400)
  redis.call('SET', 'trunkline:alive:' .. ARGV[9], 1, 'EX', ALIVE)
end
return answer
"""
    )
    .replace("WINDOW", str(WINDOW))
    .replace("ALIVE", str(ALIVE_S))
)

# KEYS: window of tokens; streams. ARGV: a call's slot, tokens to add there, streams to give back, the process.
END = (
    COMMON
    + """
add(KEYS[1], ARGV[1], tonumber(ARGV[2]))
forget(KEYS[1])
if tonumber(ARGV[3]) > 0 and redis.call('HINCRBY', KEYS[2], ARGV[4], -ARGV[3]) <= 0 then
  redis.call('HDEL', KEYS[2], ARGV[4])
end
"""
)


class ValkeyRates:
    """See `core.rates.RateLimiter`. `run` must run: it hands in what `end` was told.

    While Valkey is away, keys with a budget are refused if `fail_closed`; others go on uncounted.
    """

    def __init__(self, url: str, *, fail_closed: bool = True) -> None:
        self._redis, self._errors = connect(url)
        self._take = self._redis.register_script(TAKE)
        self._end = self._redis.register_script(END)
        self._process = secrets.token_hex(8)
        self._fail_closed = fail_closed
        self._policy = "refused if they have a budget, else uncounted" if fail_closed else "uncounted"
        self.away = False
        """Calls do not ask Valkey then, and wait for nothing."""
        self._ended: dict[tuple[str, int], list[int]] = {}
        """Tokens to add and streams to give back, by key and slot."""
        self._news = asyncio.Event()

    async def take(self, key: Key, *, tokens: int, images: int, streams: int) -> tuple[Verdict, Passed]:
        rates = key.rates
        limits = (rates.requests, rates.tokens, rates.images, rates.streams)
        arguments = [-1 if limit is None else limit for limit in limits]
        if self.away:
            return self._uncounted(key, tokens)
        taking: asyncio.Future[list[int]] = asyncio.ensure_future(
            self._take(
                keys=[*(_window(key.id, kind) for kind in KINDS), _streams(key.id)],
                args=[*arguments, 1, tokens, images, streams, self._process],
            )
        )
        try:
            short, wait, slot, *left = await asyncio.shield(taking)
        except asyncio.CancelledError:  # whoever leaves now may be counted
            taking.add_done_callback(partial(self._give_back, key.id, tokens, streams))
            raise
        except self._errors as error:
            self._lost(error)
            return self._uncounted(key, tokens)
        passed = Passed(key.id, slot, tokens, streams)
        if short:
            kinds: tuple[RateKind, ...] = (*KINDS, "streams")
            return Verdict(kinds[short - 1], limits[short - 1] or 0, wait * SLOT_S), passed
        return Verdict(requests=_left(rates.requests, left[0:2]), tokens=_left(rates.tokens, left[2:4])), passed

    def check(self, key: Key) -> None:
        if self.away and self._fail_closed and key.budgeted:
            told = "Valkey is away; keys with a budget are refused until it is back."
            raise GatewayError("storage_unavailable", told)

    def _uncounted(self, key: Key, tokens: int) -> tuple[Verdict, Passed]:
        """Let a call in without Valkey, or refuse it."""
        self.check(key)
        return Verdict(), Passed(key.id, 0, tokens, 0)

    def _lost(self, error: Exception) -> None:
        """Note that Valkey is away."""
        if not self.away:
            log.warning("Valkey is away; calls are %s: %s", self._policy, error)
        self.away = True

    def end(self, passed: Passed, tokens: int) -> None:
        more = tokens - passed.tokens
        if passed.slot and (more or passed.streams):
            ended = self._ended.setdefault((passed.key_id, passed.slot), [0, 0])
            ended[0] += more
            ended[1] += passed.streams
            self._news.set()

    def _give_back(self, key_id: str, tokens: int, streams: int, taken: "asyncio.Future[list[int]]") -> None:
        """End a call that left while it was counted."""
        if taken.cancelled() or taken.exception() is not None:
            return
        short, _, slot, *_ = taken.result()
        if not short:
            self.end(Passed(key_id, slot, tokens, streams), 0)

    async def run(self) -> None:
        """Hand in the ends of calls, and say that this process lives, until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._beat())
                while True:
                    await self._news.wait()
                    if not await self._hand_in():
                        await asyncio.sleep(BEAT_S)
        finally:
            await self._hand_in()

    async def close(self) -> None:
        """Close all connections."""
        await self._redis.aclose()

    async def _beat(self) -> None:
        while True:
            try:
                await self._redis.set(f"trunkline:alive:{self._process}", 1, ex=ALIVE_S)
            except self._errors as error:
                self._lost(error)
            else:
                if self.away:
                    log.warning("Valkey is back")
                self.away = False
            await asyncio.sleep(BEAT_S)

    async def _hand_in(self) -> bool:
        """Tell Valkey which calls have ended; False: it is away, and what matters later is kept."""
        self._news.clear()
        while self._ended:
            (key_id, slot), (more, streams) = self._ended.popitem()
            keys, arguments = (_window(key_id, "tokens"), _streams(key_id)), (slot, more, streams, self._process)
            try:
                await self._end(keys=keys, args=arguments)
            except self._errors as error:
                self._lost(error)
                if streams:
                    self._ended.setdefault((key_id, slot), [0, 0])[1] += streams
                    self._news.set()
                return False
        return True


def _window(key_id: str, kind: str) -> str:
    return f"trunkline:rate:{{{key_id}}}:{kind}"


def _streams(key_id: str) -> str:
    return f"trunkline:rate:{{{key_id}}}:streams"


def _left(limit: int | None, answer: list[Any]) -> Left | None:
    return None if limit is None else Left(limit, int(answer[0]), int(answer[1]) * SLOT_S)
