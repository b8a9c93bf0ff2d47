"""The messages between processes, as one of them hears them: read once, for all here that want some."""

import asyncio
import logging
from collections.abc import Callable

from msgspec import Struct

from trunkline.core.state import Signals, StorageError

LOOK_S = 0.5
log = logging.getLogger(__name__)


class Listener(Struct, frozen=True):
    """Who wants messages of a topic: `hear` is given their bodies, while `wants` says so or anybody else reads."""

    topic: str
    wants: Callable[[], object]
    hear: Callable[[str], object]


class Inbox:
    """Sends and hears messages. While nobody wants any, the database is not asked; `run` must run."""

    def __init__(self, signals: Signals) -> None:
        self.send = signals.send
        self._recent = signals.recent
        self._listeners: list[Listener] = []
        self._heard: set[str] = set()

    def listen(self, topic: str, wants: Callable[[], object], hear: Callable[[str], object]) -> None:
        """Hear the messages of a topic, each once."""
        self._listeners.append(Listener(topic, wants, hear))

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self.look()
            except StorageError as error:
                log.warning("what other processes ask for is not known: %s", error)

    async def look(self) -> None:
        """Read once, if anybody wants to. Raises StorageError."""
        if not any(listener.wants() for listener in self._listeners):
            return
        recent = await self._recent()
        heard, self._heard = self._heard, {signal.id for signal in recent}
        for signal in recent:
            if signal.id not in heard:
                for listener in self._listeners:
                    if listener.topic == signal.topic:
                        listener.hear(signal.body)
