"""Rates counted in a SQLite file by the processes of one machine: `core.rates.RateLimiter` for several workers.

A call costs one small transaction, made at once: some tens of microseconds, less than handing it to a thread. The file
holds a minute of counting and is not worth waiting for the disk.
"""

import logging
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import msgspec

from trunkline.core.errors import GatewayError
from trunkline.core.keys import Key
from trunkline.core.rates import Passed, Verdict
from trunkline.policy.rate import WINDOW, Counters, slot_of

BUSY_S = 2.0
SWEEP_EVERY = 4096
SCHEMA = """
CREATE TABLE IF NOT EXISTS counters (key_id TEXT PRIMARY KEY, slot INTEGER NOT NULL, state BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS streams (
    key_id TEXT, worker INTEGER, open INTEGER NOT NULL, PRIMARY KEY (key_id, worker)
) WITHOUT ROWID;
"""
_decode = msgspec.msgpack.Decoder(Counters).decode
_encode = msgspec.msgpack.Encoder().encode
log = logging.getLogger(__name__)


class SqliteRates:
    """See `core.rates.RateLimiter`."""

    def __init__(self, path: Path, worker: int = 0, workers: int = 1) -> None:
        """`worker` counts from 0 to `workers` - 1; the streams that its former life had open are no more."""
        if worker == 0:  # the others are started after it
            _drop_damaged(path)
        self._db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
        _write_ahead(self._db)
        self._db.execute("PRAGMA synchronous = OFF")
        self._db.executescript(SCHEMA)
        self._worker = worker
        self._takes = 0
        self._db.execute("DELETE FROM streams WHERE worker = ? OR worker >= ?", (worker, workers))

    async def take(self, key: Key, *, tokens: int, images: int, streams: int) -> tuple[Verdict, Passed]:
        slot = _slot()
        try:
            with self._transaction():
                counters = self._load(key.id, slot)
                counters.streams = self._open_streams(key.id)
                verdict = counters.take(key.rates, slot, tokens=tokens, images=images, streams=streams)
                if verdict.short is None:
                    self._save(key.id, slot, counters)
                    self._add_streams(key.id, streams)
        except sqlite3.Error as error:
            raise GatewayError("storage_unavailable", f"the rates cannot be counted now: {error}") from error
        return verdict, Passed(key.id, slot, tokens, streams)

    def check(self, key: Key) -> None:
        """Let every key pass: nothing here can be away."""

    def end(self, passed: Passed, tokens: int) -> None:
        more, now = tokens - passed.tokens, _slot()
        if not more and not passed.streams:
            return
        try:
            with self._transaction():
                if more:
                    counters = self._load(passed.key_id, now)
                    counters.end(passed.mark, more_tokens=more, streams=0)
                    self._save(passed.key_id, now, counters)
                self._add_streams(passed.key_id, -passed.streams)
        except sqlite3.Error as error:
            log.warning("the end of a call cannot be counted in the rates: %s", error)

    def close(self) -> None:
        """Close the file; the streams that this process counted are no more."""
        with suppress(sqlite3.Error), self._transaction():
            self._db.execute("DELETE FROM streams WHERE worker = ?", (self._worker,))
        self._db.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def _load(self, key_id: str, slot: int) -> Counters:
        self._takes += 1
        if self._takes % SWEEP_EVERY == 0:
            self._db.execute("DELETE FROM counters WHERE slot < ?", (slot - WINDOW,))
        row = self._db.execute("SELECT state FROM counters WHERE key_id = ?", (key_id,)).fetchone()
        return _decode(row[0]) if row else Counters()

    def _save(self, key_id: str, slot: int, counters: Counters) -> None:
        counters.streams = 0
        self._db.execute("INSERT OR REPLACE INTO counters VALUES (?, ?, ?)", (key_id, slot, _encode(counters)))

    def _open_streams(self, key_id: str) -> int:
        query = "SELECT coalesce(sum(open), 0) FROM streams WHERE key_id = ?"
        return int(self._db.execute(query, (key_id,)).fetchone()[0])

    def _add_streams(self, key_id: str, number: int) -> None:
        if number:
            self._db.execute(
                "INSERT INTO streams VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET open = open + excluded.open",
                (key_id, self._worker, number),
            )


def _slot() -> int:
    """Give the slot of now, by the clock that all processes share and that a restart does not set back."""
    return slot_of(time.time_ns() / 1e9)


def _drop_damaged(path: Path) -> None:
    """Delete a file that a power cut has damaged, which nothing waited for: it holds but a minute of counting."""
    try:
        with closing(sqlite3.connect(path, timeout=BUSY_S)) as db:
            verdict = db.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.OperationalError:
        return
    except sqlite3.DatabaseError as error:
        verdict = str(error)
    if verdict != "ok":
        log.warning("%s was damaged and is begun anew: %s", path.name, verdict)
        for part in ("", "-wal", "-shm"):
            path.with_name(path.name + part).unlink(missing_ok=True)


def _write_ahead(db: sqlite3.Connection) -> None:
    """Turn the write-ahead log on; while another process does so, SQLite refuses at once, whatever its timeout."""
    until = time.monotonic() + BUSY_S
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return
