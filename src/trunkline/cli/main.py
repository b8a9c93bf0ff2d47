"""The command line's entry: every command imports what it needs only when it is called."""

import sys
from typing import Annotated

import typer

from trunkline import __version__
from trunkline.cli import chat, config, db, groups, inspect, jobs, keys, models, normalize, providers, replay, serve

UsageError = typer.BadParameter.__bases__[0]  # typer does not export its click
ClickException = UsageError.__bases__[0]

app = typer.Typer(
    name="trunkline",
    help="A self-hosted gateway: the OpenAI API in front, text, image and video models of any provider behind.",
    epilog="Start with `trunkline serve`; it answers on http://127.0.0.1:4000 without a key.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(serve.serve)
app.command()(chat.chat)
app.command()(inspect.inspect)
app.command()(normalize.normalize)
app.command()(replay.replay)
app.command()(models.models)
app.command()(providers.providers)
app.add_typer(config.app, name="config")
app.add_typer(keys.app, name="keys")
app.add_typer(groups.app, name="groups")
app.add_typer(jobs.app, name="jobs")
app.add_typer(db.app, name="db")


def _version(asked: bool) -> None:  # noqa: FBT001 - a flag's callback
    if asked:
        typer.echo(f"trunkline {__version__}")
        raise typer.Exit


@app.callback()
def root(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Read the options before a command's name."""


def main() -> None:
    """Run the command line of this process and exit with its status. A wrong argument: status 2, one line."""
    try:
        status = app(standalone_mode=False)
    except (typer.Abort, KeyboardInterrupt):
        status = 130
    except BrokenPipeError:
        status = 0
    except Exception as error:
        if not isinstance(error, ClickException):
            raise
        if type(error).__name__ == "NoArgsIsHelpError":
            typer.echo(error.format_message())  # type: ignore[attr-defined]
            sys.exit(0)
        context = getattr(error, "ctx", None)
        _say(f"{error.format_message()}{f' (see `{context.command_path} --help`)' if context else ''}")  # type: ignore[attr-defined]
        status = 2 if isinstance(error, UsageError) else 1
    sys.exit(status if isinstance(status, int) else 0)


def _say(text: str) -> None:
    sys.stderr.write(f"trunkline: {' '.join(text.split())}\n")
