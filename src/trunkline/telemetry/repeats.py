"""What is said again and again while the database is away: once a minute, with how often it was meant."""

import logging

from trunkline.core.state import StorageError

EVERY_S = 60.0
MOST_SEEN = 1000


class Repeats(logging.Filter):
    """Holds back a warning about the storage that was let through less than a minute ago."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[str, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether the record is to be written; one that is names how many were not."""
        if not (isinstance(record.args, tuple) and any(isinstance(arg, StorageError) for arg in record.args)):
            return True
        said = f"{record.name}: {record.getMessage()}"
        since, held = self._seen.get(said, (0.0, 0))
        if record.created - since < EVERY_S:
            self._seen[said] = (since, held + 1)
            return False
        if len(self._seen) >= MOST_SEEN:
            self._seen.clear()
        self._seen[said] = (record.created, 0)
        if held:
            record.msg, record.args = f"{record.getMessage()} (and {held} times before)", None
        return True
