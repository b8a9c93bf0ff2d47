"""What was meant, perhaps, by a name that is not known."""

from collections.abc import Iterable


def near(name: str, known: Iterable[str], most: int = 1, likeness: float = 0.6) -> list[str]:
    """Give the known names that are most like it, the likest first; `likeness` from 0 to 1 is the least."""
    from difflib import get_close_matches  # noqa: PLC0415 - of no use as long as nobody errs

    return get_close_matches(name, dict.fromkeys(known), most, likeness)
