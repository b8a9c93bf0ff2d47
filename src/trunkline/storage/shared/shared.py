"""What the processes of one gateway share: counted rates, the events of text streams, kept answers and traces."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from msgspec import Struct

from trunkline.core.ports import AnswerCache, EventLog
from trunkline.core.rates import RateLimiter
from trunkline.storage.shared.answers import LocalAnswers
from trunkline.storage.shared.event_log import StoredLog
from trunkline.storage.shared.rates import LocalRates
from trunkline.storage.shared.sqlite_rates import SqliteRates
from trunkline.storage.sql.streams import SqlStreams

Work = Callable[[], Coroutine[Any, Any, None]]


class Shared(Struct, frozen=True):
    """`jobs` and `texts` keep the events of the two kinds of streams; `run` is to run, and `close` comes last."""

    rates: RateLimiter
    jobs: EventLog
    texts: EventLog
    answers: AnswerCache
    traces: AnswerCache
    run: Work
    close: Work
    usable: Callable[[], Mapping[str, bool]] = dict
    """Which servers can be used now, by name."""


def share(  # noqa: PLR0913 - all of it is configuration
    url: str,
    alone: Callable[[], LocalRates | SqliteRates],
    streams: SqlStreams,
    *,
    fail_closed: bool,
    max_bytes: int,
    ttl_s: float,
    cache_bytes: int,
    cache_s: float,
    traces_bytes: int,
    traces_s: float,
) -> Shared:
    """Share by Valkey (`url`), or not at all (empty): then `alone` counts, and the database keeps events.

    The events of jobs are always in the database: they are few, and must not be lost.
    Raises GatewayError `storage_unavailable` when the extra is not installed.
    """
    jobs = StoredLog(streams, max_bytes=max_bytes, ttl_s=ttl_s)
    if not url:
        counted = alone()

        async def closed() -> None:
            counted.close()

        answers = LocalAnswers(max_bytes=cache_bytes, ttl_s=cache_s)
        traces = LocalAnswers(max_bytes=traces_bytes, ttl_s=traces_s)
        return Shared(counted, jobs, jobs, answers, traces, _nothing, closed)
    from trunkline.storage.shared.valkey_answers import ValkeyAnswers  # noqa: PLC0415 - of no use without Valkey
    from trunkline.storage.shared.valkey_log import ValkeyLog  # noqa: PLC0415 - the same
    from trunkline.storage.shared.valkey_rates import ValkeyRates  # noqa: PLC0415 - the same

    rates = ValkeyRates(url, fail_closed=fail_closed)
    texts = ValkeyLog(streams, url, max_bytes=max_bytes, ttl_s=ttl_s)
    kept = ValkeyAnswers(url, max_bytes=cache_bytes, ttl_s=cache_s)
    traced = ValkeyAnswers(url, max_bytes=traces_bytes, ttl_s=traces_s)

    async def close() -> None:
        await rates.close()
        await texts.close()
        await kept.close()
        await traced.close()

    return Shared(rates, jobs, texts, kept, traced, rates.run, close, lambda: {"valkey": not rates.away})


async def _nothing() -> None:
    """Do nothing: this process alone has what it needs."""
