"""The corpus: what upstreams really send, the events that it means, and what the client gets.

`python tests/support/corpus.py` writes `events.jsonl` and `client.sse` of every case anew: read the difference before
you commit it.
"""

import tomllib
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from trunkline.core.chat import ChatRequest
from trunkline.core.events import Ended, Event, Usage, UsageReported
from trunkline.core.notes import Notes
from trunkline.dialects import CHAT_DIALECTS
from trunkline.ingress.inline_media import InlineMedia
from trunkline.ingress.openai_chat import ChunkEncoder
from trunkline.pipeline import ChatLine

CORPUS = Path(__file__).parent.parent / "corpus"
UNKNOWN: dict[str, Any] = msgspec.to_builtins(Usage())


class Case(Struct):
    """One folder `corpus/DIALECT/NAME`; `configured` is what the upstream is thought to speak."""

    dialect: str
    name: str
    folder: Path
    configured: str
    origin: str
    shows: str
    quirks: list[str]
    n: int | None
    broken: str
    rules: list[str]

    @property
    def upstream(self) -> bytes:
        return next(self.folder.glob("upstream.*")).read_bytes()


def cases() -> list[Case]:
    return [read(folder) for folder in sorted(CORPUS.glob("*/*")) if (folder / "case.toml").exists()]


def read(folder: Path) -> Case:
    facts: dict[str, Any] = tomllib.loads((folder / "case.toml").read_text())
    return Case(
        dialect=folder.parent.name,
        name=folder.name,
        folder=folder,
        configured=facts.get("configured", folder.parent.name),
        origin=facts["origin"],
        shows=facts["shows"],
        quirks=facts.get("quirks", []),
        n=facts.get("n", 1),
        broken=facts.get("broken", ""),
        rules=facts.get("rules", []),
    )


def run(case: Case, pieces: list[bytes], *, thorough: bool = False) -> tuple[list[Event], Notes]:
    notes = Notes(thorough=thorough)
    line = ChatLine(CHAT_DIALECTS[case.configured], notes, quirks=case.quirks, n=case.n, salt="corpus")
    events: list[Event] = []
    for piece in pieces:
        events += line.feed(piece)
    events += line.close(case.broken)
    return events, notes


def encode(events: list[Event]) -> bytes:
    """As the gateway writes it, with zeros where only the gateway would count."""
    if isinstance(events[-1], Ended) and not any(isinstance(event, UsageReported) for event in events):
        events = [*events[:-1], UsageReported(Usage()), events[-1]]
    request = ChatRequest("asked-for", {}, stream=True, include_usage=True)
    encoder = ChunkEncoder(request, id="chatcmpl-corpus", created=1700000000)
    return b"".join(encoder.encode(InlineMedia().feed(events)))


def as_lines(events: list[Event]) -> str:
    """One JSON object a line: the event's name, and its members but defaults."""
    lines = []
    for event in events:
        members = {
            key: value
            for key, value in msgspec.json.decode(msgspec.json.encode(event)).items()
            if value not in (None, "", 0, False)
        }
        if isinstance(event, UsageReported):
            members["usage"] = {key: value for key, value in members["usage"].items() if value != UNKNOWN[key]}
        lines.append(msgspec.json.encode({"event": type(event).__name__, **members}).decode())
    return "\n".join(lines) + "\n"


def write_all() -> None:
    for case in cases():
        events, _ = run(case, [case.upstream])
        (case.folder / "events.jsonl").write_text(as_lines(events))
        (case.folder / "client.sse").write_bytes(encode(events))


if __name__ == "__main__":
    write_all()
