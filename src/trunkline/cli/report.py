"""What `inspect` found, as a page for people."""

from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from trunkline.core.rules import RULES
from trunkline.inspection.clients import FRAMING, MEASURED, MODES, OUTCOMES
from trunkline.inspection.report import Found, Report

_COLOURS = {"ok": "green", "degraded": "yellow", "empty": "red", "error": "red"}
_TOLD = {"ok": "reads it", "degraded": "loses something", "empty": "shows nothing", "error": "fails"}
_SHOWN_DETAILS = 3
_NARROW = 20  # columns of context at the least
_VISIBLE = {"\t": "→", "\r": "␍", "\x00": "␀", "\ufeff": "␣"}


def show(report: Report, console: Console | None = None) -> None:
    """Print a report: each rule once, with its first place shown; what clients do; what the stream says."""
    console = console or Console(highlight=False, soft_wrap=True)
    groups: dict[str, list[Found]] = {}
    for found in report.departures:
        groups.setdefault(found.rule, []).append(found)
    for group in sorted(groups.values(), key=lambda group: (-_harm(group[0].rule, report), group[0].place)):
        _show_group(console, group, report.data)
    _show_clients(console, report)
    _show_summary(console, report)


def _harm(rule: str, report: Report) -> int:
    """Say how many clients a rule breaks, so that the worst is shown first."""
    broken = RULES[rule].severity == "broken"
    hurt = sum(rule in client.rules for client in report.clients)
    return 100 * broken + 10 * hurt + sum(outcome != "." for outcome in MEASURED.get(rule, ("", {}))[0])


def _show_group(console: Console, group: list[Found], data: bytes) -> None:
    first = group[0]
    rule = RULES[first.rule]
    colour = "red" if rule.severity == "broken" else "yellow"
    console.print(f"[bold {colour}]{first.rule}[/]  [dim]{_where(group)}[/]")
    details = list(dict.fromkeys(found.detail for found in group if found.detail))
    more = f" … and {len(details) - _SHOWN_DETAILS} more" if len(details) > _SHOWN_DETAILS else ""
    told = f": {'; '.join(details[:_SHOWN_DETAILS])}{more}" if details else ""
    console.print(f"  {escape(rule.text + told)}")
    _show_bytes(console, first, data)
    console.print(f"  [dim]{escape(_who_minds(first.rule))}[/]")
    console.print()


def _where(group: Sequence[Found]) -> str:
    lines = sorted({found.line for found in group})
    if len(group) == 1:
        return f"line {lines[0]}, byte {group[0].offset}"
    if len(lines) == 1:
        return f"×{len(group)}, line {lines[0]}, from byte {group[0].offset}"
    return f"×{len(group)}, lines {lines[0]}–{lines[-1]}, from byte {group[0].offset}"


def _show_bytes(console: Console, found: Found, data: bytes) -> None:
    """Show the line that has the fault, a window of it where it is long, and a caret below the fault."""
    place = found.place if found.place < len(data) else len(data.rstrip(b"\r\n"))
    begin = max(data.rfind(b"\n", 0, place), data.rfind(b"\r", 0, place)) + 1
    ends = [end for end in (data.find(b"\n", place), data.find(b"\r", place)) if end >= 0]
    end = min(ends, default=len(data))
    before, fault, after = (
        _visible(data[start:stop])
        for start, stop in (
            (begin, place),
            (place, min(end, place + found.size)),
            (min(end, place + found.size), end),
        )
    )
    label = f"  {found.line} │ "
    width = max(_NARROW, console.width - len(label))
    before, fault, after = _window(before, fault, after, width)
    console.print(f"[dim]{label}[/]{escape(before)}[bold red]{escape(fault)}[/]{escape(after)}", soft_wrap=True)
    mark = "^" * max(1, cell_len(fault)) if found.size else "^ here"
    console.print(f"[dim]{' ' * (len(label) - 2)}│ [/]{' ' * cell_len(before)}[bold red]{mark}[/]", soft_wrap=True)


def _window(before: str, fault: str, after: str, width: int) -> tuple[str, str, str]:
    """Cut a line to a width, around its fault."""
    if cell_len(before + fault + after) <= width:
        return before, fault, after
    fault = _cut(fault, width * 2 // 3)
    room = width - cell_len(fault)
    left = min(cell_len(before), max(room // 2, room - cell_len(after)))
    if cell_len(before) > left:
        while cell_len(before) > max(0, left - 1):
            before = before[max(1, (cell_len(before) - left) // 2) :]
        before = "…" + before
    return before, fault, _cut(after, width - cell_len(before) - cell_len(fault))


def _cut(text: str, width: int) -> str:
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(0, width - 1)).rstrip() + "…"


def _visible(data: bytes) -> str:
    text = data.decode("utf-8", "replace")
    return "".join(_VISIBLE.get(char, char if char.isprintable() else "·") for char in text)


def _who_minds(rule: str) -> str:
    """Say in one line what the measured clients do with a departure."""
    if rule in FRAMING:
        return RULES[rule].breaks
    if rule not in MEASURED:
        return f"all eight clients read it ({RULES[rule].breaks})"
    outcomes, says = MEASURED[rule]
    told: dict[str, list[str]] = {}
    for (mode, name), outcome in zip(MODES.items(), outcomes, strict=True):
        if outcome != ".":
            told.setdefault(says.get(mode, says.get("*", _TOLD[OUTCOMES[outcome]])), []).append(name)
    if len(told) == 1 and outcomes.count(".") == 0:
        return f"all eight clients: {next(iter(told))}"
    parts = [f"{', '.join(names)}: {words}" for words, names in told.items()]
    return "; ".join(parts) + ("" if outcomes.count(".") == 0 else "; the others read it")


def _show_clients(console: Console, report: Report) -> None:
    if all(client.outcome == "ok" for client in report.clients):
        console.print("[green]All eight measured clients read it.[/]\n")
        return
    causes = list(dict.fromkeys(tuple(client.rules) for client in report.clients if client.rules))
    same = len(causes) == 1 and all(client.rules for client in report.clients)
    console.print(f"[bold]What clients do with these bytes[/]{f' [dim]({_few(causes[0])})[/]' if same else ''}")
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 2))
    for client in report.clients:
        colour = _COLOURS[client.outcome]
        row = [MODES[client.mode], f"[{colour}]{_TOLD[client.outcome]}[/]", escape(client.says or "")]
        table.add_row(*row, *([] if same else [f"[dim]{_few(client.rules)}[/]"]))
    console.print(table)
    console.print()


def _few(rules: Sequence[str]) -> str:
    return ", ".join(rules[:_SHOWN_DETAILS]) + (", …" if len(rules) > _SHOWN_DETAILS else "")


def _show_summary(console: Console, report: Report) -> None:
    usage = report.usage
    counted = f"{usage['prompt_tokens']} + {usage['completion_tokens']} tokens" if usage else "no usage"
    media = ", ".join(f"{medium['type']} {_cut(medium['url'], 60)}" for medium in report.media)
    parts = [
        report.dialect,
        _number(report.events, "event"),
        f"{_number(len(report.text), 'character')} of text",
        *([f"{len(report.reasoning)} of reasoning"] if report.reasoning else []),
        *([_number(len(report.tool_calls), "tool call")] if report.tool_calls else []),
        f"finish {report.finish_reason}" if report.finish_reason else "no finish",
        counted,
        media or "no media",
    ]
    console.print(", ".join(parts), markup=False)
    if report.wrappings:
        console.print(f"read out of: {', '.join(report.wrappings)}", style="dim", markup=False)
    if report.error is not None:
        console.print(f"broken: {report.error[1]} ({report.error[0]})", style="bold red", markup=False)
    elif report.verdict == 2:
        console.print(
            f"broken: {_number(len(report.departures), 'departure')}, not all of them can be repaired", style="bold red"
        )
    elif report.verdict == 1:
        console.print(f"{_number(len(report.departures), 'departure')}, repaired", style="yellow")
    else:
        console.print("clean", style="green")


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
