"""The command line's entry: a command is imported when it is asked for, and what it needs when it is called."""

import sys
from importlib import import_module

import click

from trunkline import __version__

NAMES = (
    "serve",
    "chat",
    "inspect",
    "normalize",
    "replay",
    "models",
    "providers",
    "config",
    "keys",
    "groups",
    "jobs",
    "db",
)
"""The commands, each in the module of its name."""


class Commands(click.Group):
    """All commands."""

    def list_commands(self, _context: click.Context) -> list[str]:
        """Name them, in the order of the help."""
        return list(NAMES)

    def get_command(self, _context: click.Context, name: str) -> click.Command | None:
        """Import one."""
        if name not in NAMES:
            return None
        found: click.Command = getattr(import_module(f"trunkline.cli.{name}"), name)
        return found


@click.group(
    cls=Commands,
    help="A self-hosted gateway: the OpenAI API in front, text, image and video models of any provider behind.",
    epilog="Start with `trunkline serve`; it answers on http://127.0.0.1:4000 without a key.",
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.version_option(__version__, message="trunkline %(version)s", help="Print the version.")
def trunkline() -> None:
    """Read the options before a command's name."""


def main() -> None:
    """Run the command line of this process and exit with its status. A wrong argument: status 2, one line."""
    try:
        status = trunkline(prog_name="trunkline", standalone_mode=False)
    except (click.Abort, KeyboardInterrupt):
        status = 130
    except BrokenPipeError:
        status = 0
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        status = 0
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        _say(f"{error.format_message()}{f' (see `{context.command_path} --help`)' if context else ''}")
        status = error.exit_code
    sys.exit(status if isinstance(status, int) else 0)


def _say(text: str) -> None:
    sys.stderr.write(f"trunkline: {' '.join(text.split())}\n")
