"""`trunkline chat`: one question to a gateway, the answer streamed to the terminal."""

from pathlib import Path

import click


@click.command()
@click.argument("prompt", nargs=-1, required=True, metavar="PROMPT…", help="What to say.")
@click.option("-m", "--model", default="local/text", help="The model.")
@click.option(
    "--url",
    default="http://127.0.0.1:4000",
    envvar="TRUNKLINE_URL",
    show_envvar=True,
    help="The gateway, as in http://127.0.0.1:4000.",
)
@click.option(
    "--key", default="", show_default=False, envvar="TRUNKLINE_KEY", show_envvar=True, help="A key of the gateway."
)
@click.option("--output", default=".", metavar="DIR", help="Where pictures and films are saved.")
@click.option("--json", is_flag=True, help="Write the chunks as they come, one a line.")
def chat(  # noqa: PLR0913 - the command's options
    prompt: tuple[str, ...], *, model: str, url: str, key: str, output: str, json: bool
) -> None:
    """Ask a model. The answer streams to the terminal; pictures and films are saved."""
    import asyncio
    import sys

    from trunkline.cli.conversation import Conversation, Trouble

    conversation = Conversation(url=url, key=key, output=Path(output), json=json)
    try:
        asyncio.run(conversation.ask(model, " ".join(prompt)))
    except Trouble as trouble:
        sys.stderr.write(f"trunkline: {trouble}\n")
        raise SystemExit(1) from None
