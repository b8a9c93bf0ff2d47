"""Rates counted in Valkey (or Redis) by all replicas: `core.rates.RateLimiter`, one script a call, by its clock.

A window is a hash of slots with their counts and total (`t`), beside a sorted set of the slots. Streams are sets of
calls by process; those of a process that has not been heard of for `ALIVE_S` do not count. What a call was told is
remembered: a script whose answer is lost is sent again, and may run late, but a call counts once and ends once.
"""

import asyncio
import itertools
import logging
import secrets
from functools import partial

from trunkline.core.errors import GatewayError
from trunkline.core.keys import Key
from trunkline.core.rates import Left, Passed, RateKind, Verdict
from trunkline.policy.rate import SLOT_S, WINDOW
from trunkline.storage.shared.valkey import connect

ALIVE_S = 10
BEAT_S = 1.0
KEPT_S = 120
"""How long windows and calls are remembered: until nothing can be corrected, and nothing runs late."""
REFUSED_S = 20
"""The same of calls that were not let in: there may be very many."""
MOST = 10**9
NOBODY = "nobody"
"""Whose calls show whether Valkey counts: it may answer, and refuse scripts or writes."""
KINDS: tuple[RateKind, ...] = ("requests", "tokens", "images")
log = logging.getLogger(__name__)

COMMON = f"""
local time = redis.call('TIME')
local slot = time[1] * 10 + math.floor(time[2] / 100000)
local function drop(w, from, to)
  for _, s in ipairs(redis.call('ZRANGEBYSCORE', w .. ':z', from, to)) do
    redis.call('HINCRBY', w, 't', -tonumber(redis.call('HGET', w, s) or '0'))
    redis.call('HDEL', w, s)
    redis.call('ZREM', w .. ':z', s)
  end
end
local function forget(w)
  drop(w, '-inf', '(' .. (slot - {WINDOW}))
  drop(w, '(' .. (slot + {WINDOW}), '+inf')  -- counted before the clock was set back
end
local function add(w, at, n)
  if n == 0 then return end
  redis.call('ZADD', w .. ':z', at, at)
  redis.call('HINCRBY', w, at, n)
  redis.call('HINCRBY', w, 't', n)
  redis.call('EXPIRE', w, {KEPT_S})
  redis.call('EXPIRE', w .. ':z', {KEPT_S})
end
"""

# KEYS: windows of requests, tokens, images; streams; the call.
# ARGV: the four limits (-1: none), the four amounts, the process, the call's number.
TAKE = (
    (
        COMMON
        + """
local told = redis.call('GET', KEYS[5])
if told then return told end
local function tell(kept, ...)
  local answer = table.concat({...}, ' ')
  redis.call('SET', KEYS[5], answer, 'EX', kept)
  return answer
end
local limits, asked, totals = {}, {}, {}
for i = 1, 4 do limits[i], asked[i] = tonumber(ARGV[i]), tonumber(ARGV[4 + i]) end
if limits[4] >= 0 and asked[4] > 0 then
  local open = 0
  for _, process in ipairs(redis.call('SMEMBERS', KEYS[4])) do
    local calls = KEYS[4] .. ':' .. process
    if redis.call('EXISTS', 'trunkline:alive:' .. process) == 1 then open = open + redis.call('SCARD', calls)
    else redis.call('DEL', calls); redis.call('SREM', KEYS[4], process) end
  end
  if open + asked[4] > limits[4] then return tell(REFUSED, 4, 10, slot) end
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
      return tell(REFUSED, i, wait, slot)
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
  local calls = KEYS[4] .. ':' .. ARGV[9]
  redis.call('SADD', KEYS[4], ARGV[9])
  redis.call('SADD', calls, ARGV[10])
  redis.call('EXPIRE', KEYS[4], 86400)
  redis.call('EXPIRE', calls, 86400)
  redis.call('SET', 'trunkline:alive:' .. ARGV[9], 1, 'EX', ALIVE)
end
return tell(KEPT, unpack(answer))
"""
    )
    .replace("WINDOW", str(WINDOW))
    .replace("REFUSED", str(REFUSED_S))
    .replace("KEPT", str(KEPT_S))
    .replace("ALIVE", str(ALIVE_S))
)

# KEYS: window of tokens; streams; the process's calls. ARGV: the process; of each call its number, and tokens to add.
END = (
    COMMON
    + """
local calls = KEYS[2] .. ':' .. ARGV[1]
for i = 2, #ARGV, 2 do
  local call = KEYS[3] .. ARGV[i]
  local let_in = string.match(redis.call('GET', call) or '', '^0 0 (%d+)')
  if let_in then add(KEYS[1], let_in, tonumber(ARGV[i + 1])) end
  redis.call('SET', call, 'ended', 'EX', KEPT)
  redis.call('SREM', calls, ARGV[i])
end
forget(KEYS[1])
if redis.call('EXISTS', calls) == 0 then redis.call('SREM', KEYS[2], ARGV[1]) end
"""
).replace("KEPT", str(KEPT_S))


class ValkeyRates:
    """See `core.rates.RateLimiter`. `run` must run: it hands in what `end` was told.

    While Valkey is away, keys with a budget are refused if `fail_closed`; others go on uncounted.
    """

    def __init__(self, url: str, *, fail_closed: bool = True) -> None:
        self._redis, self._errors = connect(url)
        from redis.exceptions import ResponseError  # noqa: PLC0415 - an extra, which `connect` has found

        self._refusal = ResponseError
        self._take = self._redis.register_script(TAKE)
        self._end = self._redis.register_script(END)
        self._process = secrets.token_hex(8)
        self._fail_closed = fail_closed
        self._policy = "refused if they have a budget, else uncounted" if fail_closed else "uncounted"
        self.away = False
        """Calls do not ask Valkey then, and wait for nothing."""
        self._numbers = itertools.count(1)
        self._ended: dict[str, dict[int, int]] = {}
        """Tokens to add, by key and call."""
        self._news = asyncio.Event()

    async def take(self, key: Key, *, tokens: int, images: int, streams: int) -> tuple[Verdict, Passed]:
        rates = key.rates
        limits = (rates.requests, rates.tokens, rates.images, rates.streams)
        if self.away:
            return self._uncounted(key, Passed(key.id, 0, tokens, 0))
        passed = Passed(key.id, next(self._numbers), tokens, streams)
        arguments = [-1 if limit is None else limit for limit in limits]
        taking = asyncio.ensure_future(self._count(key.id, passed.mark, (*arguments, 1, tokens, images, streams)))
        try:
            short, wait, _, *left = map(int, (await asyncio.shield(taking)).split())
        except asyncio.CancelledError:  # whoever leaves now may be counted
            taking.add_done_callback(partial(self._give_back, passed))
            raise
        except self._errors as error:  # and so may be a call whose answer is lost, now or later
            self._lost(error)
            return self._uncounted(key, passed)
        if short:
            kinds: tuple[RateKind, ...] = (*KINDS, "streams")
            return Verdict(kinds[short - 1], limits[short - 1] or 0, wait * SLOT_S), passed
        return Verdict(requests=_left(rates.requests, left[0:2]), tokens=_left(rates.tokens, left[2:4])), passed

    async def _count(self, key_id: str, mark: int, arguments: tuple[int, ...]) -> bytes:
        """Let Valkey say whether a call may pass: by four limits, for four amounts."""
        windows = (_window(key_id, kind) for kind in KINDS)
        keys = (*windows, _streams(key_id), f"{_calls(key_id, self._process)}{mark}")
        answer: bytes = await self._take(keys=keys, args=(*arguments, self._process, mark))
        return answer

    def check(self, key: Key) -> None:
        if self.away and self._fail_closed and key.budgeted:
            told = "Valkey is away; keys with a budget are refused until it is back."
            raise GatewayError("storage_unavailable", told)

    def _uncounted(self, key: Key, passed: Passed) -> tuple[Verdict, Passed]:
        """Let a call in without Valkey's word, or refuse it."""
        try:
            self.check(key)
        except GatewayError:
            self.end(passed, 0)
            raise
        return Verdict(), passed

    def _lost(self, error: Exception) -> None:
        """Note that Valkey is away."""
        if not self.away:
            log.warning("Valkey is away; calls are %s: %s", self._policy, error)
        self.away = True

    def end(self, passed: Passed, tokens: int) -> None:
        more = tokens - passed.tokens
        if passed.mark and (more or passed.streams):
            self._ended.setdefault(passed.key_id, {})[passed.mark] = more
            self._news.set()

    def _give_back(self, passed: Passed, taking: "asyncio.Future[bytes]") -> None:
        """End a call that left while it was counted, whatever has come of that."""
        if not taking.cancelled():
            taking.exception()  # nobody else looks
        self.end(passed, 0)

    async def run(self) -> None:
        """Hand in the ends of calls, and say that this process lives, until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._beat())
                while True:
                    await self._news.wait()
                    if self.away or not await self._hand_in():
                        await asyncio.sleep(BEAT_S)  # `_beat` does it, when Valkey is back
        finally:
            await self._hand_in()

    async def close(self) -> None:
        """Close all connections."""
        await self._redis.aclose()

    async def _beat(self) -> None:
        while True:
            try:
                await self._redis.set(f"trunkline:alive:{self._process}", 1, ex=ALIVE_S)
                if self.away and await self._counts_again():
                    log.warning("Valkey is back")
                    self.away = False
            except self._errors as error:
                self._lost(error)
            await asyncio.sleep(BEAT_S)

    async def _counts_again(self) -> bool:
        """Count a call of nobody's, and hand in all calls that have ended: while that fails, Valkey is away."""
        mark = next(self._numbers)
        await self._count(NOBODY, mark, (*(MOST,) * 4, 1, 1, 1, 0))
        await self._tell(NOBODY, {mark: -1})
        return await self._hand_in(proven=True)

    async def _hand_in(self, *, proven: bool = False) -> bool:
        """Tell Valkey which calls have ended; False: it is away, and all is kept.

        What it refuses though it is `proven` to count is let go: it would be refused for ever.
        """
        self._news.clear()
        while self._ended:
            key_id, ended = self._ended.popitem()
            try:
                await self._tell(key_id, ended)
            except BaseException as error:
                if proven and isinstance(error, self._refusal):
                    log.error("Valkey refuses the ends of %d calls of key %s: %s", len(ended), key_id, error)  # noqa: TRY400
                    continue
                self._ended.setdefault(key_id, {}).update(ended)  # what was heard all the same does not count twice
                self._news.set()
                if not isinstance(error, self._errors):
                    raise
                self._lost(error)
                return False
        return True

    async def _tell(self, key_id: str, ended: dict[int, int]) -> None:
        """Tell Valkey which calls of a key have ended."""
        keys = (_window(key_id, "tokens"), _streams(key_id), _calls(key_id, self._process))
        await self._end(keys=keys, args=(self._process, *itertools.chain(*ended.items())))


def _window(key_id: str, kind: str) -> str:
    return f"trunkline:rate:{{{key_id}}}:{kind}"


def _streams(key_id: str) -> str:
    return f"trunkline:rate:{{{key_id}}}:open"


def _calls(key_id: str, process: str) -> str:
    return f"trunkline:rate:{{{key_id}}}:call:{process}:"


def _left(limit: int | None, answer: list[int]) -> Left | None:
    return None if limit is None else Left(limit, answer[0], answer[1] * SLOT_S)
