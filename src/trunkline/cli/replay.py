"""`trunkline replay`: a capture, served as its upstream would serve it."""

import asyncio
import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from trunkline.inspection.paste import Capture


@click.command()
@click.argument("file", metavar="FILE|-", help="The capture, or a recording; `-` is standard input.")
@click.option("--listen", required=True, metavar="HOST:PORT", help="Where to listen; port 0: any.")
@click.option(
    "--speed",
    type=click.FloatRange(min=0),
    default=1.0,
    help="How much faster than a recording was made; 0: without waiting.",
)
def replay(file: str, *, listen: str, speed: float) -> None:
    """Serve a capture as its upstream did, faults and all.

    Every request gets it, whatever its path.
    """
    from trunkline.cli.capture import read_capture
    from trunkline.cli.replayed import Replay
    from trunkline.cli.server import bind
    from trunkline.inspection.paste import unwrap

    capture = unwrap(read_capture(file))
    try:
        opened = bind(listen)
    except (OSError, ValueError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise click.BadParameter(f"cannot listen on {listen}: {reason}", param_hint="--listen") from None
    host, port = opened.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    sys.stderr.write(f"trunkline: replaying {_named(file, capture)} on http://{shown}:{port}\n")
    sys.stderr.flush()
    asyncio.run(Replay(capture, speed).serve(opened))


def _named(file: str, capture: "Capture") -> str:
    reads = f" in {len(capture.reads)} reads" if capture.reads else ""
    return f"{'standard input' if file == '-' else file} ({len(capture.data)} bytes{reads})"
