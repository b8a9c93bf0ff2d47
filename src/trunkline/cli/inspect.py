"""`trunkline inspect`: every departure of a captured stream from the output contract."""

import sys

import click


@click.command()
@click.argument("file", metavar="FILE|-", help="The capture, as it was pasted; `-` is standard input.")
@click.option("--json", is_flag=True, help="Write JSON for tools.")
def inspect(file: str, *, json: bool) -> None:
    """List what a provider's stream does wrong, and what it says. Exit 0: clean, 1: repairable, 2: broken."""
    from trunkline.cli.capture import read_capture
    from trunkline.inspection.examine import examine

    report = examine(read_capture(file))
    if json:
        sys.stdout.buffer.write(report.as_json() + b"\n")
        sys.stdout.buffer.flush()
    else:
        from trunkline.cli.report import show

        show(report)
    raise SystemExit(report.verdict)
