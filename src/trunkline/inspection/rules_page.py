"""The documentation's page of rules, made of the rules and of what was measured."""

from trunkline.core.rules import GROUPS, RULES, Rule
from trunkline.inspection.clients import FRAMING, MEASURED, MODES

_SIGNS = {".": "✓", "d": "·", "0": "∅", "E": "E"}
_COLUMNS = ("PR", "PH", "LP", "LL", "NR", "NH", "AI", "LJ")


def rules() -> str:
    """Every rule, one table a group, and the measured clients."""
    lines: list[str] = []
    for title, group in GROUPS.items():
        head = f"| rule | what it is | what comes of it | {' | '.join(_COLUMNS)} |"
        lines += [f"## {title}", "", head, "|---|---|---|" + ":-:|" * len(_COLUMNS)]
        lines += [_row(name, rule) for name, rule in group.items()]
        lines.append("")
    lines += ["## What the clients say", ""]
    for name in RULES:
        told = _told(name)
        if told:
            lines.append(f"- `{name}`: {told}.")
    columns = ", ".join(f"{short} {name}" for short, name in zip(_COLUMNS, MODES.values(), strict=True))
    return "\n".join([f"{columns}.", "", *lines]) + "\n"


def _row(name: str, rule: Rule) -> str:
    text = rule.text if rule.severity == "repaired" else f"{rule.text} ({rule.severity})"
    outcomes = MEASURED[name][0] if name in MEASURED else "." * len(MODES)
    cells = ["*"] * len(MODES) if name in FRAMING else [_SIGNS[outcome] for outcome in outcomes]
    return f"| `{name}` | {text} | {rule.breaks} | {' | '.join(cells)} |"


def _told(name: str) -> str:
    if name in FRAMING or name not in MEASURED:
        return ""
    outcomes, says = MEASURED[name]
    told: dict[str, list[str]] = {}
    for (mode, client), outcome in zip(MODES.items(), outcomes, strict=True):
        words = says.get(mode, says.get("*", ""))
        if outcome != "." and words:
            told.setdefault(words, []).append(client)
    return "; ".join(f"{', '.join(clients)}: {words}" for words, clients in told.items()).rstrip(".")
