"""What `inspect` finds in a capture, as data and as a page for people."""

from typing import Any

from msgspec import Struct

from trunkline.cli.capture import run_line
from trunkline.core.events import (
    Failed,
    Finished,
    MediaReady,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStarted,
    UsageReported,
)
from trunkline.core.notes import Notes
from trunkline.core.rules import RULES
from trunkline.ingress.openai_chat import usage_members


class Found(Struct, frozen=True):
    """One departure: where it begins and what it is."""

    line: int
    offset: int
    rule: str
    message: str


class Report(Struct, kw_only=True):
    """Everything that `inspect --json` prints (contract section 3)."""

    dialect: str
    departures: list[Found]
    text: str
    reasoning: str
    tool_calls: list[dict[str, Any]]
    finish_reason: str | None
    usage: dict[str, Any] | None
    media: list[dict[str, str]]
    events: int
    error: dict[str, str] | None = None

    @property
    def status(self) -> int:
        """0: clean, 1: departures that can be repaired, 2: the stream is broken."""
        if self.error is not None:
            return 2
        if any(RULES[found.rule].severity == "broken" for found in self.departures):
            return 2
        return 1 if self.departures else 0


def examine(data: bytes) -> Report:
    """Run a capture through the line and list what it does wrong."""
    notes = Notes(thorough=True)
    events, line = run_line(data, notes)
    starts = line_starts(data)
    report = Report(
        dialect=line.dialect.name,
        departures=[
            Found(found.line, starts[found.line - 1] if 0 < found.line <= len(starts) else 0, found.rule, found.message)
            for found in sorted(notes.departures, key=lambda found: found.line or len(starts))
        ],
        text="",
        reasoning="",
        tool_calls=[],
        finish_reason=None,
        usage=None,
        media=[],
        events=len(events),
    )
    for event in events:
        if isinstance(event, TextDelta) and event.choice == 0:
            report.text += event.text
        elif isinstance(event, ReasoningDelta) and event.choice == 0:
            report.reasoning += event.text
        elif isinstance(event, ToolCallStarted):
            report.tool_calls.append({"index": event.call, "id": event.id, "name": event.name, "arguments": ""})
        elif isinstance(event, ToolCallDelta):
            report.tool_calls[-1 if event.choice else event.call]["arguments"] += event.arguments
        elif isinstance(event, Finished) and event.choice == 0:
            report.finish_reason = event.reason
        elif isinstance(event, UsageReported):
            report.usage = usage_members(event.usage)
        elif isinstance(event, MediaReady):
            report.media.append({"type": event.media.kind, "url": event.media.url})
        elif isinstance(event, Failed):
            report.error = {"code": event.code, "message": event.message}
    return report


def line_starts(data: bytes) -> list[int]:
    """Give the byte offset at which each line begins; lines end at CR, LF or CRLF."""
    starts = [0]
    position = 0
    while position < len(data):
        byte = data[position]
        position += 1
        if byte == 0x0D and data[position : position + 1] == b"\n":
            position += 1
        if byte in (0x0A, 0x0D):
            starts.append(position)
    return starts


def show(report: Report) -> None:
    """Print a report for people."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    if report.departures:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for name in ("line", "byte", "rule", "what it is", "what clients do"):
            table.add_column(name, justify="right" if name in ("line", "byte") else "left")
        for found in report.departures:
            rule = RULES[found.rule]
            colour = "red" if rule.severity == "broken" else "yellow"
            text = f"{rule.text}: {found.message}" if found.message else rule.text
            table.add_row(str(found.line or ""), str(found.offset), f"[{colour}]{found.rule}[/]", text, rule.breaks)
        console.print(table)
        console.print()
    usage = report.usage
    counted = f"{usage['prompt_tokens']} + {usage['completion_tokens']} tokens" if usage else "no usage"
    console.print(
        f"{report.dialect}, {report.events} events, {len(report.text)} characters of text, "
        f"finish {report.finish_reason}, {counted}, {len(report.media)} media",
        markup=False,
    )
    if report.error is not None:
        console.print(f"broken: {report.error['message']} ({report.error['code']})", style="red", markup=False)
    elif report.departures:
        console.print(f"{len(report.departures)} departures, all repaired", style="yellow")
    else:
        console.print("clean", style="green")
