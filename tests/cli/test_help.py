"""What the help says fits where it stands."""

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from trunkline.cli.main import trunkline


def groups(command: click.Command, *path: str) -> Iterator[tuple[str, ...]]:
    """Give the names of a group and of those in it."""
    if isinstance(command, click.Group):
        yield path
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from groups(command.get_command(context, name) or click.Command(name), *path, name)


@pytest.mark.parametrize("path", list(groups(trunkline)), ids=" ".join)
def test_no_command_is_described_by_half_a_sentence(path: tuple[str, ...]) -> None:
    told = CliRunner().invoke(trunkline, [*path, "--help"], terminal_width=80).output
    commands = told.partition("Commands:\n")[2]
    assert commands
    assert "..." not in commands
