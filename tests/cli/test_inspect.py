"""`trunkline inspect` and `normalize`: what people and tools get of a capture."""

import io
import json
import re
from pathlib import Path

from click.testing import CliRunner, Result
from corpus import CORPUS, cases
from rich.console import Console

from trunkline.cli.main import trunkline
from trunkline.cli.report import show
from trunkline.inspection.examine import examine

SSE = "event: message\ndata: {}\n\n"


def run(*arguments: str, stdin: bytes = b"") -> Result:
    return CliRunner().invoke(trunkline, arguments, input=stdin)


def capture(name: str) -> Path:
    return next((CORPUS / "openai_chat" / name).glob("upstream.*"))


def page(data: bytes, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    show(examine(data), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_page_groups_and_points() -> None:
    told = page(capture("capture_video_wrapper").read_bytes())
    assert "role_null  ×44, lines 9–1041, from byte 112" in told
    assert '9 │ "role": null,\n    │ ^^^^^^^^^^^^\n' in told
    assert "openai-node .stream(): missing role for choice 0" in told
    assert "What clients do with these bytes" in told
    assert re.search(r"Vercel AI SDK +fails +Response stream ended without a finish reason", told)
    assert told.rstrip().endswith("departures, repaired")


def test_long_lines_are_windowed_around_the_fault() -> None:
    data = capture("capture_relay_zero_usage").read_bytes()
    told = page(data, 90)
    shown = [line for line in told.splitlines() if "│" in line]
    assert shown
    assert all(len(line) <= 91 for line in shown)
    assert any("…" in line and '"system_fingerprint": ""' in line for line in shown)
    for line, mark in zip(shown[::2], shown[1::2], strict=True):
        place = mark.index("^")
        assert "…" not in line[place : place + 1]


def test_every_rule_has_its_page() -> None:
    told: set[str] = set()
    for case in cases():
        data = case.upstream
        for end, width in ((len(data), 100), (len(data) * 2 // 3, 40)):
            report = examine(data[:end])
            shows = {f"{width} {found.rule}" for found in report.departures} | {f"{width} {report.verdict}"}
            if not shows <= told:
                text = page(data[:end], width)
                assert "\x1b" not in text
                assert all(found.rule in text for found in report.departures)
                told |= shows
    assert len(told) > 100


def test_wide_characters_keep_the_caret_in_place() -> None:
    choices = '[{"index":0,"delta":{"content":"火🔥","role":null}}]'
    chunk = f'{{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":{choices}}}'
    told = page(f"data: {chunk}\n\n".encode(), 200)
    line, mark = next(
        (line, mark)
        for line, mark in zip(told.splitlines(), told.splitlines()[1:], strict=False)
        if "火" in line and mark.count("^") == 11
    )
    assert mark.index("^") == line.index('"role"') + 2  # two characters of two columns


def test_the_summary_says_what_it_was_read_out_of() -> None:
    data = b"```\n" + capture("plain").read_bytes() + b"```\n"
    assert "read out of: Markdown fence" in page(data)


def test_exit_codes_and_json() -> None:
    clean = run("inspect", "--json", "-", stdin=(CORPUS / "openai_chat" / "plain" / "client.sse").read_bytes())
    assert clean.exit_code == 0
    assert json.loads(clean.stdout)["departures"] == []
    repaired = run("inspect", "--json", str(capture("capture_relay_zero_usage")))
    assert repaired.exit_code == 1
    assert json.loads(repaired.stdout)["finish_reason"] == "stop"
    broken = run("inspect", "--json", str(capture("eof_without_finish")))
    assert broken.exit_code == 2
    assert run("inspect", str(capture("error_first"))).exit_code == 2


def test_a_file_that_is_not_there() -> None:
    told = run("inspect", "/nowhere/x.sse")
    assert told.exit_code == 2
    assert told.stdout == ""
    assert "cannot be read: No such file" in told.stderr


def test_normalize_reads_what_is_pasted() -> None:
    plain = capture("plain").read_bytes()
    wanted = run("normalize", "-", "--id", "i", "--created", "5", "--model", "m", "--include-usage", stdin=plain)
    assert wanted.exit_code == 0
    pasted = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + plain
    quoted = repr(plain).encode()
    for data in (pasted, quoted):
        assert (
            run("normalize", "-", "--id", "i", "--created", "5", "--model", "m", "--include-usage", stdin=data).stdout
            == wanted.stdout
        )
    assert run("normalize", str(capture("error_after_text"))).exit_code == 1
