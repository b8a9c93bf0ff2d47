"""`trunkline normalize`: the canonical stream of a captured one."""

import secrets
import sys

import click


@click.command()
@click.argument("file", metavar="FILE|-", help="The capture; `-` is standard input.")
@click.option("--model", help="The model's name in the answer.")
@click.option("--id", "answer_id", help="The answer's id.")
@click.option("--created", type=click.IntRange(min=0), help="When it was made, Unix seconds.")
@click.option("--include-usage", is_flag=True, help="Write the usage chunk.")
def normalize(file: str, *, model: str | None, answer_id: str | None, created: int | None, include_usage: bool) -> None:
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
        answer_id or started.id, model or started.model or "unknown", started.created if created is None else created
    )
    events = [asked if isinstance(event, Started) else event for event in events]
    request = ChatRequest(asked.model, {}, stream=True, include_usage=include_usage)
    encoder = ChunkEncoder(request, id=asked.id or f"chatcmpl-{secrets.token_hex(12)}", created=asked.created)
    for data in encoder.encode(with_usage(events) if include_usage else events):
        sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
    raise SystemExit(1 if events and isinstance(events[-1], Failed) else 0)
