"""What `inspect` finds in a capture, as data."""

from typing import Any

import msgspec
from msgspec import Struct

from trunkline.core.rules import RULES
from trunkline.inspection.clients import Client

ROWS_SHOWN = 5_000


class Found(Struct, frozen=True, kw_only=True):
    """One departure. `line` (from 1) and `offset` (bytes) are places in the file that was given."""

    line: int
    offset: int
    length: int
    """How many bytes are at fault; 0: something is missing there."""
    rule: str
    detail: str
    place: int
    """The offset in the upstream's own bytes."""
    size: int
    """How many of those are at fault."""

    @property
    def message(self) -> str:
        """What it is, in words."""
        text = RULES[self.rule].text
        return f"{text}: {self.detail}" if self.detail else text


class Row(Struct, kw_only=True):
    """One frame that the reader cut, with what came of it; the last row may be the stream's end, without bytes."""

    t_ms: float | None
    line: int
    offset: int
    end: int
    raw: str
    departures: list[int] = []
    chunks: list[str] = []


class Report(Struct, kw_only=True):
    """Everything that is to be told of a capture."""

    dialect: str
    wrappings: list[str]
    data: bytes
    """The upstream's own bytes."""
    departures: list[Found] = []
    rows: list[Row] = []
    text: str = ""
    reasoning: str = ""
    tool_calls: list[dict[str, Any]] = []
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None
    media: list[dict[str, str]] = []
    events: int = 0
    error: tuple[str, str] | None = None
    """Code and message of the failure that the stream ends with."""
    clients: list[Client] = []

    @property
    def verdict(self) -> int:
        """0: clean, 1: departures that can be repaired, 2: the stream is broken."""
        severities = {RULES[found.rule].severity for found in self.departures}
        if self.error is not None or "broken" in severities:
            return 2
        return 1 if "repaired" in severities else 0

    def as_json(self) -> bytes:
        """Write what `trunkline inspect --json` prints (contract section 3)."""
        return msgspec.json.encode(self._members(("line", "offset", "rule", "message")))

    def as_page_json(self) -> bytes:
        """Write what `POST /admin/api/inspect` answers (docs/admin-api.md section 10)."""
        members = self._members(("line", "offset", "length", "rule", "message"))
        members["verdict"] = self.verdict
        members["rows"] = self.rows[:ROWS_SHOWN]
        if len(self.rows) > ROWS_SHOWN:
            members["rows_left_out"] = len(self.rows) - ROWS_SHOWN
        members["clients"] = self.clients
        return msgspec.json.encode(members)

    def _members(self, of_departure: tuple[str, ...]) -> dict[str, Any]:
        return {
            "dialect": self.dialect,
            "departures": [{name: getattr(found, name) for name in of_departure} for found in self.departures],
            "text": self.text,
            "reasoning": self.reasoning,
            "tool_calls": self.tool_calls,
            "finish_reason": self.finish_reason,
            "usage": self.usage,
            "media": self.media,
            "events": self.events,
        }
