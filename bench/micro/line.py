"""What each station of the pure line costs: `make bench-micro`, or `python bench/micro/line.py --help`.

µs are CPU time of this process, the median of the rounds; the stations take turns in each round. *Blocks* are the
memory blocks that a station's results hold (what it allocates and frees again is in its time, not in this number).
"""

import argparse
import gc
import sys
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, NamedTuple

from trunkline.calls.meter import Meter, Settlement
from trunkline.core.caller import Caller
from trunkline.core.chat import ChatRequest, Target
from trunkline.core.events import Event
from trunkline.core.notes import Notes
from trunkline.core.stream import Normaliser
from trunkline.dialects.openai_chat import DIALECT
from trunkline.ingress.completion import Collector
from trunkline.ingress.inline_media import InlineMedia
from trunkline.ingress.openai_chat import ChunkEncoder, parse
from trunkline.pipeline import ChatLine

CHUNKS = 200
STREAMS = 20
"""Streams in one measurement of a round."""
IMAGE_BYTES = 20_000_000
PIECE_BYTES = 65536
"""What one read of the upstream client gives of a large body."""
HEAD = (
    '{"id":"chatcmpl-D1kBm7uRz0QwX4tYpL9sEaVc2NfGh","object":"chat.completion.chunk","created":1795000000,'
    '"model":"m-2026","service_tier":"default","system_fingerprint":"fp_51e1070cf2","choices":['
)
USAGE = '{"prompt_tokens":212,"completion_tokens":200,"total_tokens":412}'
REQUEST = (
    b'{"model":"m","messages":[{"role":"system","content":"You answer briefly."},{"role":"user","content":"'
    + b"Tell me what a gateway has to do. " * 24
    + b'"}],"temperature":0.7,"max_tokens":512,"stream":true}'
)
ANSWER = (
    b'{"id":"chatcmpl-D1kBm7uRz0QwX4tYpL9sEaVc2NfGh","object":"chat.completion","created":1795000000,"model":"m-2026",'
    b'"choices":[{"index":0,"message":{"role":"assistant","content":"'
    + b"A proxy reads what comes and writes it on. " * 14
    + b'","refusal":null},"logprobs":null,"finish_reason":"stop"}],"usage":'
    + USAGE.encode()
    + b"}"
)


def chunk(delta: str, finish: str = "null") -> bytes:
    """Write one chunk as the upstream of this bench does."""
    choice = f'{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{finish}}}'
    return f"data: {HEAD}{choice}]}}\n\n".encode()


def stream() -> list[bytes]:
    """Write one stream, a chunk an item."""
    return [
        chunk('{"role":"assistant","content":"","refusal":null}'),
        *(chunk(f'{{"content":" word {number}"}}') for number in range(CHUNKS)),
        chunk("{}", '"stop"'),
        f'data: {HEAD}],"usage":{USAGE}}}\n\n'.encode(),
        b"data: [DONE]\n\n",
    ]


def reads(chunks_each: int) -> list[bytes]:
    """Write the stream as reads of so many chunks."""
    chunks = stream()
    return [b"".join(chunks[at : at + chunks_each]) for at in range(0, len(chunks), chunks_each)]


class Nobody:
    """Is told what a call came to, and does not care."""

    def settle(self, settlement: Settlement) -> None:
        """Take it."""

    lose = settle


NOBODY = Nobody()


class Station(NamedTuple):
    """A station of the line: a new one for each stream, fed with what the one before gives."""

    name: str
    make: Callable[[], Callable[[Any], Any]]


def request() -> ChatRequest:
    """Read the client's request."""
    return parse(REQUEST)


def encoder() -> Callable[[list[Event]], list[bytes]]:
    """Make an encoder."""
    encode = ChunkEncoder(request(), id="chatcmpl-1", created=1).encode
    return lambda events: list(encode(events))


def whole() -> Callable[[bytes], list[bytes]]:
    """Make the whole way from an upstream's bytes to a client's."""
    line = ChatLine(DIALECT, Notes(), salt="0123456789ab")
    meter = Meter(request(), Caller("r-0123456789ab"), NOBODY)
    inline, write = InlineMedia(), ChunkEncoder(request(), id="chatcmpl-1", created=1)

    def step(data: bytes) -> list[bytes]:
        said = line.lone(data)
        if isinstance(said, str):
            meter.feed_text(said)
            return [write.text(said) or b""]
        return list(write.encode(inline.feed(meter.feed(line.feed(data, lone=False) if said is None else said))))

    return step


STATIONS = (
    Station("reader: bytes → frames", lambda: DIALECT.reader(DIALECT.parse, Notes()).feed),
    Station("decoder: frames → events", lambda: DIALECT.decoder(Notes(), 1, "0123456789ab").feed),
    Station("normaliser: events → legal events", lambda: Normaliser(Notes()).feed),
    Station("meter: counts them", lambda: Meter(request(), Caller("r"), NOBODY).feed),
    Station("encoder: events → bytes", encoder),
)
WHOLE = Station("**the whole line**", whole)


def cost_us(station: Station, given: Sequence[Any]) -> float:
    """Measure CPU time in µs per chunk; making the stations is not part of it."""
    made = [station.make() for _ in range(STREAMS)]
    begin = time.process_time_ns()
    for feed in made:
        for one in given:
            feed(one)
    return (time.process_time_ns() - begin) / STREAMS / CHUNKS / 1000


def blocks(station: Station, given: Sequence[Any]) -> float:
    """Count the memory blocks per chunk that the results hold."""
    kept: list[Any] = [None] * len(given)
    feed = station.make()
    gc.collect()
    gc.disable()
    before = sys.getallocatedblocks()
    for at, one in enumerate(given):
        kept[at] = feed(one)
    after = sys.getallocatedblocks()
    gc.enable()
    return (after - before) / CHUNKS


def stations(rounds: int) -> None:
    """Print the table of the stations, for reads of one chunk and of sixteen."""
    feed = whole()
    said = b"".join(piece for data in reads(7) for piece in feed(data))
    if said.count(b" word ") != CHUNKS:  # the finish comes when the line is closed
        raise SystemExit("the line lost something: its figures mean nothing")
    tables: dict[str, list[str]] = {station.name: [] for station in (*STATIONS, WHOLE)}
    for chunks_each in (1, 16):
        inputs: list[tuple[Station, list[Any]]] = [(WHOLE, reads(chunks_each))]
        given: list[Any] = reads(chunks_each)
        for station in STATIONS:
            inputs.append((station, given))
            feed = station.make()
            given = [feed(one) for one in given]
        taken: dict[str, list[float]] = {station.name: [] for station, _ in inputs}
        for _ in range(rounds):
            for station, each in inputs:
                taken[station.name].append(cost_us(station, each))
        for station, each in inputs:
            tables[station.name] += [f"{median(taken[station.name]):.2f}", f"{blocks(station, each):.1f}"]
    print("| µs per chunk | one chunk a read | blocks | 16 chunks a read | blocks |\n|---|---|---|---|---|")
    for name, cells in tables.items():
        print(f"| {name} | {' | '.join(cells)} |")


def collect() -> None:
    """Read an unstreamed answer and write the client's."""
    line = ChatLine(DIALECT, Notes(), salt="0123456789ab")
    collector = Collector(request(), id="chatcmpl-1", created=1)
    collector.feed(line.whole(ANSWER))
    collector.body()


def once_per_call(rounds: int) -> None:
    """Print what is done once for each call."""
    asked = request()
    target = Target(provider="mock", model="m-2026", base_url="http://127.0.0.1", dialect="openai_chat")
    works: dict[str, Callable[[], object]] = {
        "read the request (1 KB)": request,
        "build the upstream's request": lambda: DIALECT.build(asked, target),
        "read an unstreamed answer (1 KB) and write the client's": collect,
        "make a whole line": whole,
    }
    print("\n| µs per call | |\n|---|---|")
    for name, work in works.items():
        taken = []
        for _ in range(rounds):
            begin = time.process_time_ns()
            for _ in range(1000):
                work()
            taken.append((time.process_time_ns() - begin) / 1e6)
        print(f"| {name} | {median(taken):.1f} |")


def picture(rounds: int) -> None:
    """Print what a line of 20 MB costs, and how long it holds up everything else at once."""
    data = chunk('{"content":"![image](data:image/png;base64,' + "iVBORw0KGgoAAAANSUhE" * (IMAGE_BYTES // 20) + ')"}')
    totals, longest = [], []
    for _ in range(rounds):
        feed = whole()
        steps = []
        for at in range(0, len(data), PIECE_BYTES):
            begin = time.process_time_ns()
            feed(data[at : at + PIECE_BYTES])
            steps.append((time.process_time_ns() - begin) / 1e6)
        totals.append(sum(steps))
        longest.append(max(steps))
    print("\n| a picture of 20 MB in one line, ms | |\n|---|---|")
    print(f"| the whole line | {median(totals):.1f} |\n| its longest step | {median(longest):.1f} |")


def main() -> None:
    """Measure all of it."""
    parser = argparse.ArgumentParser(prog="bench/micro/line.py", description="What each station of the line costs.")
    parser.add_argument("--rounds", type=int, default=9, help="how often each thing is measured (default 9)")
    rounds = parser.parse_args().rounds
    stations(rounds)
    once_per_call(rounds)
    picture(min(rounds, 5))


if __name__ == "__main__":
    main()
