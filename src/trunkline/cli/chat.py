"""`trunkline chat`: one question to a gateway, the answer streamed to the terminal."""

from pathlib import Path
from typing import Annotated

import typer


def chat(  # noqa: PLR0913 - the command's options
    prompt: Annotated[list[str], typer.Argument(metavar="PROMPT…", help="What to say.")],
    model: Annotated[str, typer.Option("-m", "--model", help="The model.")] = "local/text",
    url: Annotated[
        str, typer.Option(envvar="TRUNKLINE_URL", help="The gateway, as in http://127.0.0.1:4000.")
    ] = "http://127.0.0.1:4000",
    key: Annotated[str, typer.Option(envvar="TRUNKLINE_KEY", help="A key of the gateway.")] = "",
    output: Annotated[Path, typer.Option(metavar="DIR", help="Where pictures and films are saved.")] = Path(),
    *,
    json: Annotated[bool, typer.Option("--json", help="Write the chunks as they come, one a line.")] = False,
) -> None:
    """Ask a model. The answer streams to the terminal; pictures and films are saved."""
    import asyncio
    import sys

    from trunkline.cli.conversation import Conversation, Trouble

    conversation = Conversation(url=url, key=key, output=output, raw=json)
    try:
        asyncio.run(conversation.ask(model, " ".join(prompt)))
    except Trouble as trouble:
        sys.stderr.write(f"trunkline: {trouble}\n")
        raise typer.Exit(1) from None
