"""The pool of drawing processes and the films in the making; all in memory, all bounded."""

import asyncio
import itertools
import multiprocessing
import secrets
import time
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import ParamSpec

from msgspec import Struct

from trunkline.local.scene.film import FilmOrder
from trunkline.local.scene.work import CANCELLED, Made, PictureOrder, begin, make_film, make_picture

WORKERS = 2
MAX_WAITING = 32
"""Pictures and films asked for and not finished; more are refused."""
MAX_FILMS = 64
"""Films that are kept; the oldest finished one goes first."""

Given = ParamSpec("Given")


class BusyError(Exception):
    """The queue is full."""


class Film(Struct, frozen=True, eq=False):
    """One film's job. `created_at` in Unix seconds."""

    id: str
    model: str
    order: FilmOrder
    made: Future[Made]
    place: int
    created_at: int


class Studio:
    """Draws in processes of its own, so that the server answers while they draw."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._progress = self._context.RawArray("B", MAX_WAITING)
        self._pool = self._new_pool()
        self._pool.submit(int)  # has the first process started, the second when two things are asked for at a time
        self._unfinished: dict[Future[Made], int] = {}
        self.films: dict[str, Film] = {}

    def _new_pool(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(WORKERS, self._context, initializer=begin, initargs=(self._progress,))

    def close(self) -> None:
        """End the processes."""
        for place in self._unfinished.values():
            self._progress[place] = CANCELLED
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def pictures(self, orders: list[PictureOrder]) -> list[Made]:
        """Draw pictures side by side. Raises BusyError, BadPictureError."""
        if len(self._unfinished) + len(orders) > MAX_WAITING:
            raise BusyError
        futures = [self._submit(self._place(), make_picture, order) for order in orders]
        return await asyncio.gather(*map(asyncio.wrap_future, futures))

    def film(self, order: FilmOrder, model: str) -> Film:
        """Begin a film. Raises BusyError."""
        if len(self._unfinished) >= MAX_WAITING:
            raise BusyError
        finished = [film for film in self.films.values() if film.made.done()]
        for film in finished[: max(0, len(self.films) + 1 - MAX_FILMS)]:
            del self.films[film.id]
        place = self._place()
        self._progress[place] = 0
        made = self._submit(place, make_film, order, place)
        film = Film(f"video_{secrets.token_hex(12)}", model, order, made, place, time.time_ns() // 10**9)
        self.films[film.id] = film
        return film

    def percent(self, film: Film) -> int:
        """Tell how far a film is; 0 until it is begun."""
        return 100 if film.made.done() else self._progress[film.place]

    def drop(self, film: Film) -> None:
        """Forget a film, and stop the work on it."""
        del self.films[film.id]
        if not film.made.cancel() and not film.made.done():
            self._progress[film.place] = CANCELLED

    def _place(self) -> int:
        taken = set(self._unfinished.values())
        return next(place for place in itertools.count() if place not in taken)

    def _submit(
        self, place: int, work: Callable[Given, Made], *given: Given.args, **named: Given.kwargs
    ) -> Future[Made]:
        try:
            future = self._pool.submit(work, *given, **named)
        except BrokenProcessPool:  # a process was killed; what it worked on has failed, the rest goes on
            self._pool = self._new_pool()
            future = self._pool.submit(work, *given, **named)
        self._unfinished[future] = place
        future.add_done_callback(lambda done: self._unfinished.pop(done, None))
        return future
