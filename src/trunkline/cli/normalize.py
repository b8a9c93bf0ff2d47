"""`trunkline normalize`: the canonical stream of a captured one."""

import secrets
import sys
from typing import Annotated

import typer


def normalize(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="The capture; `-` is standard input.")],
    model: Annotated[str | None, typer.Option(help="The model's name in the answer.")] = None,
    id: Annotated[str | None, typer.Option("--id", help="The answer's id.")] = None,  # noqa: A002 - OpenAI's name
    created: Annotated[int | None, typer.Option(min=0, help="When it was made, Unix seconds.")] = None,
    *,
    include_usage: Annotated[bool, typer.Option("--include-usage", help="Write the usage chunk.")] = False,
) -> None:
    """Write the canonical stream of a capture. Exit 1 when it ends in an error event."""
    from trunkline.cli.capture import read_capture, with_usage
    from trunkline.core.chat import ChatRequest
    from trunkline.core.events import Failed, Started
    from trunkline.ingress.openai_chat import ChunkEncoder
    from trunkline.inspection.examine import read_events
    from trunkline.inspection.paste import unwrap

    events = read_events(unwrap(read_capture(file)))
    started = next((event for event in events if isinstance(event, Started)), Started())
    asked = Started(
        id or started.id, model or started.model or "unknown", started.created if created is None else created
    )
    events = [asked if isinstance(event, Started) else event for event in events]
    request = ChatRequest(asked.model, {}, stream=True, include_usage=include_usage)
    encoder = ChunkEncoder(request, id=asked.id or f"chatcmpl-{secrets.token_hex(12)}", created=asked.created)
    for data in encoder.encode(with_usage(events) if include_usage else events):
        sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
    raise typer.Exit(1 if events and isinstance(events[-1], Failed) else 0)
