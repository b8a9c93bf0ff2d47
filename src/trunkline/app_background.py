"""The composition root's part for what runs behind the calls: when it fails, the process ends, to be started again."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

Work = Callable[[], Coroutine[Any, Any, None]]
_log = logging.getLogger(__name__)


class Background:
    """Keeps apart what runs as long as the server: one failure ends no other task, so running calls can end well."""

    def __init__(self) -> None:
        self.failed = False
        """Something does not run any more that calls need: the server is to end as if it were told to."""

    async def keep(self, work: Work) -> None:
        """Run it until it is done or cancelled; say so if anything else ends it."""
        try:
            await work()
        except (Exception, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            self.failed = True
            _log.critical("%s has failed; this process ends, to be started again", work.__qualname__, exc_info=error)
