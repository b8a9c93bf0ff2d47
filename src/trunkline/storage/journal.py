"""Ledger rows on the local disk from the moment a call is settled until the database has them.

In one directory each process has segments `MARK-N.jsonl` beside a `MARK.lock` that is locked while the process lives.
What was written survives the process (kill -9), though not a power cut: nothing waits for the disk.
"""

import fcntl
import logging
import os
import secrets
from collections.abc import Generator
from pathlib import Path

import msgspec

from trunkline.core.money import LedgerRow

ROW = msgspec.json.Decoder(LedgerRow)
ENCODER = msgspec.json.Encoder()
log = logging.getLogger(__name__)
APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC


class FileJournal:
    """See `core.state.Journal`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._mark = secrets.token_hex(8)
        self._lock = os.open(directory / f"{self._mark}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._file: int | None = None
        self._number = 0

    def write(self, rows: list[LedgerRow]) -> None:
        if self._file is None:
            self._number += 1
            self._file = os.open(self._path(f"{self._mark}-{self._number}"), APPEND, 0o600)
        size = os.fstat(self._file).st_size
        data = memoryview(ENCODER.encode_lines(rows))
        try:
            while data:
                data = data[os.write(self._file, data) :]
        except OSError:
            os.ftruncate(self._file, size)  # half a row would spoil the next one
            raise

    def cut(self) -> str | None:
        if self._file is None:
            return None
        os.close(self._file)
        self._file = None
        return f"{self._mark}-{self._number}"

    def read(self, segment: str) -> list[LedgerRow]:
        rows = []
        for line in self._path(segment).read_bytes().split(b"\n"):
            try:
                rows += [ROW.decode(line)] if line else []
            except msgspec.DecodeError:
                self._keep_aside(line)
        return rows

    def drop(self, segment: str) -> None:
        try:
            self._path(segment).unlink(missing_ok=True)
        except OSError as error:  # whoever finds it leaves out what is booked
            log.warning("a part of the journal that is booked cannot be deleted: %s", error)

    def reject(self, row: LedgerRow) -> None:
        self._keep_aside(msgspec.json.encode(row))

    def left(self) -> Generator[str]:
        for lock in sorted(self._directory.glob("*.lock")):
            held = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield from self._segments(lock.stem)
                if not self._segments(lock.stem):
                    lock.unlink(missing_ok=True)
            except BlockingIOError:  # it lives, or another process sees to it
                continue
            finally:
                os.close(held)

    def close(self) -> None:
        self.cut()
        if not self._segments(self._mark):
            (self._directory / f"{self._mark}.lock").unlink(missing_ok=True)
        os.close(self._lock)

    def _path(self, segment: str) -> Path:
        return self._directory / f"{segment}.jsonl"

    def _segments(self, mark: str) -> list[str]:
        names = [path.stem for path in self._directory.glob(f"{mark}-*.jsonl")]
        return sorted(names, key=lambda name: int(name.rpartition("-")[2]))

    def _keep_aside(self, line: bytes) -> None:
        with (self._directory / "rejected.jsonl").open("ab") as file:
            file.write(line + b"\n")
