"""`trunkline inspect`: every departure of a captured stream from the output contract."""

import sys
from typing import Annotated

import typer


def inspect(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="The capture; `-` is standard input.")],
    *,
    json: Annotated[bool, typer.Option("--json", help="Write JSON for tools.")] = False,
) -> None:
    """List what a provider's stream does wrong, and what it says. Exit 0: clean, 1: repairable, 2: broken."""
    import msgspec

    from trunkline.cli.capture import read_capture
    from trunkline.cli.report import examine, show

    report = examine(read_capture(file))
    if json:
        sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
    else:
        show(report)
    raise typer.Exit(report.status)
