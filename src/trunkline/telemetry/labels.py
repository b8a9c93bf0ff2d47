"""Which targets have series of their own: clients may name any model where a pattern passes names on."""

MOST_TARGETS = 500
OTHERS = "others"
"""The model of all further targets of a provider."""


class Targets:
    """The targets that were seen first, as labels."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, str]] = set()

    def place(self, provider: str, model: str) -> tuple[str, str]:
        """Give the labels of a target."""
        if len(self._seen) < MOST_TARGETS:
            self._seen.add((provider, model))
        return (provider, model) if (provider, model) in self._seen else (provider, OTHERS)
