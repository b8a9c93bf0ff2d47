"""A coverage-guided fuzzer over the whole line: `make fuzz`, or `python tests/properties/fuzz.py SECONDS`.

Whatever bytes come, in whatever cuts: nothing raises, the events obey the grammar and say the same however the bytes
were cut, what we write reads back, and `inspect` has a place for every departure. What it finds is kept in `.fuzz/`.
"""

import sys
import time
from pathlib import Path

import atheris

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

with atheris.instrument_imports(include=["trunkline"]):
    from trunkline.core.chat import ChatRequest
    from trunkline.core.events import Ended, Event, Extras, Failed, Finished, ReasoningDelta, RefusalDelta, TextDelta
    from trunkline.core.notes import Notes
    from trunkline.core.stream import Grammar
    from trunkline.dialects import CHAT_DIALECTS
    from trunkline.ingress.inline_media import InlineMedia
    from trunkline.ingress.openai_chat import ChunkEncoder
    from trunkline.inspection.examine import examine
    from trunkline.pipeline import ChatLine

FOLDER = ROOT / ".fuzz"
DIALECTS = list(CHAT_DIALECTS)
CPU_S = 5.0
"""The most that an input may take: on a busy machine the clock says nothing."""
STALLED_S = 600
WORDS = (
    b"data: ", b"data:", b"\n\n", b"\r\n", b"\r", b"[DONE]", b"event: error", b": c", b"id: 1", b"retry: 1",
    b'{"choices":[',
    b'"delta":{', b'"content":', b'"finish_reason":', b'"tool_calls":[', b'"usage":{', b'"error":{', b'"index":',
    b"\\ud83d", b"null", b"}]}", b"\xef\xbb\xbf", b"1e999", b"```",
)  # fmt: skip


def read(data: bytes, cut: int, dialect: str) -> list[Event]:
    """Run a stream through the line, in pieces of `cut` bytes (0: whole)."""
    line = ChatLine(CHAT_DIALECTS[dialect], Notes(), n=None, salt="fuzz")
    events: list[Event] = []
    for start in range(0, len(data), cut or len(data) or 1):
        events += line.feed(data[start : start + (cut or len(data))])
    return events + line.close()


def said(events: list[Event]) -> list[object]:
    """What events say, neighbouring text of a kind joined: how it was cut is nobody's business."""
    lines: list[object] = []
    for event in events:
        if isinstance(event, TextDelta | ReasoningDelta | RefusalDelta):
            key = (type(event), event.choice)
            if lines and isinstance(lines[-1], list) and lines[-1][0] == key:
                lines[-1][1] += event.text
            else:
                lines.append([key, event.text])
        elif not isinstance(event, Extras):
            lines.append(event)
    return lines


def check(data: bytes) -> None:
    """One input: the first two bytes choose the dialect and the cut."""
    if len(data) < 2:
        return
    begun = time.process_time()
    dialect, cut, data = DIALECTS[data[0] % len(DIALECTS)], data[1], data[2:]
    events = read(data, 0, dialect)
    grammar = Grammar()
    for event in events:
        grammar.feed(event)
    grammar.close()
    if not isinstance(events[-1], Failed):  # a failure's words may tell how far the reading came
        assert said(events) == said(read(data, cut, dialect))
    written = b"".join(
        ChunkEncoder(ChatRequest("m", {}), id="fuzz", created=1).encode(InlineMedia().feed(list(events)))
    )
    again = read(written, 0, "openai_chat")
    assert isinstance(again[-1], Ended) == isinstance(events[-1], Ended)
    finished = [sum(isinstance(event, Finished) for event in each) for each in (again, events)]
    assert finished[0] == finished[1]
    report = examine(data)
    assert all(0 <= each.offset <= len(data) for each in report.departures)
    assert time.process_time() - begun < CPU_S


def seeds() -> Path:
    """Put the corpus where the fuzzer reads it, once for the usual dialect and once for its own."""
    folder = FOLDER / "corpus"
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted((ROOT / "tests" / "corpus").glob("*/*/upstream.*")):
        dialect, name = path.parts[-3:-1]
        for of in {dialect, "openai_chat"}:
            (folder / f"{of}-{dialect}-{name}").write_bytes(bytes((DIALECTS.index(of), 7)) + path.read_bytes())
    words = ("".join(f"\\x{byte:02x}" for byte in word) for word in WORDS)
    (FOLDER / "words").write_text("".join(f'"{word}"\n' for word in words))
    return folder


def main() -> None:
    """Fuzz for the seconds that are asked for."""
    seconds = sys.argv[1] if len(sys.argv) > 1 else "600"
    options = [
        f"-max_total_time={seconds}", "-max_len=8192", f"-timeout={STALLED_S}", "-rss_limit_mb=2048",
        f"-dict={FOLDER / 'words'}", f"-artifact_prefix={FOLDER}/", str(seeds()),
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *options], check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
