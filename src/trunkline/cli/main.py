"""The command line's entry: every command is imported only when it is called."""

import sys


def main() -> None:
    """Run the command line of this process and exit with its status."""
    sys.exit("trunkline: no command is there yet")
