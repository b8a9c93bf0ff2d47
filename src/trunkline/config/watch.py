"""Taking over a changed configuration while the gateway runs: on SIGHUP, and when the file has changed."""

import asyncio
import logging
import os
from collections.abc import Callable
from pathlib import Path

from trunkline.config.load import Loaded
from trunkline.config.read import ConfigError

LOOK_S = 2.0
SETTLE_S = 0.2
"""A file is read when it has not changed for so long: editors write in steps."""
log = logging.getLogger(__name__)


class ConfigWatch:
    """Reads the configuration again when asked, or when its file has changed, and hands it to `use`.

    One that cannot be used is named in the log, and the former stays. `use` gives the names of what takes effect at
    the next start only.
    """

    def __init__(self, path: Path | None, load: Callable[[], Loaded], use: Callable[[Loaded], list[str]]) -> None:
        self._path = path
        self._load = load
        self._use = use
        self._asked = asyncio.Event()

    def ask(self) -> None:
        """Read it again now; what SIGHUP does."""
        self._asked.set()

    async def run(self) -> None:
        """Watch until cancelled."""
        seen = self._stamp()
        while True:
            try:
                async with asyncio.timeout(LOOK_S):
                    await self._asked.wait()
            except TimeoutError:
                if self._stamp() == seen:
                    continue
            self._asked.clear()
            seen = await self._settled()
            await self._reload()

    async def _reload(self) -> None:
        try:
            loaded = await asyncio.to_thread(self._load)
            late = self._use(loaded)
        except ConfigError as error:
            for problem in error.problems:
                log.error("the changed configuration is not used, the former one stays: %s", problem)  # noqa: TRY400
            return
        except Exception:
            log.exception("the changed configuration is not used, the former one stays")
            return
        for warning in loaded.warnings:
            log.warning("%s", warning)
        log.info("the configuration was read again and is in use: %s", loaded.path or "no file, defaults")
        if late:
            log.warning("changed, but used from the next start on: %s", ", ".join(late))

    async def _settled(self) -> tuple[int, int, int]:
        stamp = self._stamp()
        while True:
            await asyncio.sleep(SETTLE_S)
            former, stamp = stamp, self._stamp()
            if former == stamp:
                return stamp

    def _stamp(self) -> tuple[int, int, int]:
        """Give what changes with the file; links are followed, so that a swapped one is noticed."""
        if self._path is None:
            return (0, 0, 0)
        try:
            found = os.stat(self._path)  # noqa: PTH116 - one call, often
        except OSError:
            return (0, 0, 0)
        return (found.st_mtime_ns, found.st_size, found.st_ino)
