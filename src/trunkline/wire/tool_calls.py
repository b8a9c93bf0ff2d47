"""Putting an upstream's tool-call fragments together: which call a fragment belongs to, and when it is whole."""

from typing import Any

from msgspec import Raw

from trunkline.core.events import Event, ToolCallDelta, ToolCallStarted, ToolKind
from trunkline.core.notes import Notes
from trunkline.wire.loose import as_raw, paired
from trunkline.wire.scanner import Scanner


class _Call:
    """One call as it grows. Its arguments are whole when their JSON closes."""

    __slots__ = (
        "announced",
        "arguments",
        "complete",
        "extra",
        "id",
        "kind",
        "name",
        "number",
        "scanner",
        "silent",
        "sofar",
    )

    def __init__(self, number: int, kind: ToolKind) -> None:
        self.number = number
        self.kind = kind
        self.id = ""
        self.name = ""
        self.extra: dict[str, Raw] | None = None
        self.announced = False
        self.arguments: list[str] = []  # held until the call has a name
        self.silent = True  # nothing but white space so far
        self.complete = False
        self.sofar: str | None = ""  # while each fragment may repeat all before it
        self.scanner = Scanner()


class ToolCalls:
    """The tool calls of one choice. `salt` makes the ids that a provider left out."""

    def __init__(self, choice: int, salt: str, notes: Notes) -> None:
        self._choice = choice
        self._salt = salt
        self._notes = notes
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def complete(self) -> bool:
        """Whether no call's arguments are cut."""
        return all(call.complete or call.silent for call in self._calls)

    def feed(  # noqa: PLR0913 - the members of one fragment
        self,
        out: list[Event],
        *,
        index: int | None,
        id: str,  # noqa: A002 - the wire's name
        name: str,
        arguments: Any,
        line: int,
        kind: ToolKind = "function",
        extra: dict[str, Raw] | None = None,
    ) -> None:
        """Take one fragment and append its events."""
        call = self._find(index, id, name, line)
        if call is None:
            call = _Call(len(self._calls), kind)
            self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        if call.announced and ((id and id == call.id) or name):
            self._notes.add("tool_call_restarted", line)
        call.id = call.id or id
        call.name = call.name or name
        call.extra = call.extra or extra
        if arguments is not None and type(arguments) is not str:
            self._notes.add("tool_arguments_object", line)
            arguments = bytes(as_raw(arguments)).decode()
        if call.name and not call.announced:
            self._announce(call, out, line)
        if arguments:
            self._append(call, paired(arguments), out, line)

    def close(self, out: list[Event]) -> None:
        """Finish the choice: nameless calls are given out, calls without arguments get `{}`."""
        for call in self._calls:
            if not call.announced:
                self._notes.add("tool_call_unannounced")
                self._announce(call, out, 0)
            if call.silent and call.kind != "custom":
                self._notes.add("tool_arguments_empty")
                out.append(ToolCallDelta(call.number, "{}", self._choice))
                call.silent = False

    def _find(self, index: int | None, id: str, name: str, line: int) -> _Call | None:  # noqa: A002
        """Give the call that a fragment continues, None if it begins one."""
        if index is None:
            self._notes.add("tool_index_missing", line)
            return self._find_unnumbered(id, name)
        call = self._by_index.get(index)
        if call is None:
            return None
        if (id and call.id and id != call.id) or (name and call.complete and not (id and id == call.id)):
            self._notes.add("tool_index_repeated", line)
            return next((known for known in self._calls if id and known.id == id), None)
        return call

    def _find_unnumbered(self, id: str, name: str) -> _Call | None:  # noqa: A002
        if id:
            known = next((call for call in self._calls if call.id == id), None)
            if known or name or not self._calls or self._calls[-1].id:
                return known
            return self._calls[-1]
        if not self._calls:
            return None
        last = self._calls[-1]
        return None if name and (last.complete or name != last.name) and last.name else last

    def _announce(self, call: _Call, out: list[Event], line: int) -> None:
        call.announced = True
        if not call.id:
            self._notes.add("tool_id_missing", line)
            call.id = f"call_{self._salt}{self._choice}_{call.number}"
        out.append(ToolCallStarted(call.number, call.id, call.name, self._choice, call.kind, call.extra))
        out.extend(ToolCallDelta(call.number, piece, self._choice) for piece in call.arguments)
        call.arguments.clear()

    def _append(self, call: _Call, arguments: str, out: list[Event], line: int) -> None:
        if call.complete:
            self._notes.add("tool_arguments_trailing", line)
            return
        if call.kind != "custom":
            arguments = self._until_complete(call, self._grown(call, arguments, line), line)
        if call.announced:
            if arguments:
                out.append(ToolCallDelta(call.number, arguments, self._choice))
        else:
            call.arguments.append(arguments)

    def _grown(self, call: _Call, arguments: str, line: int) -> str:
        """Give what is new in a fragment: some repeat the arguments so far, where no JSON could go on like that."""
        sofar = call.sofar
        if sofar is None:
            return arguments
        if not sofar:
            call.sofar = arguments.lstrip()
        elif len(arguments) > len(sofar) and arguments.startswith(sofar) and sofar.rstrip()[-1] not in ":[,":
            self._notes.add("content_cumulative", line)
            call.sofar = arguments
            return arguments[len(sofar) :]
        elif arguments:
            call.sofar = None
        return arguments

    def _until_complete(self, call: _Call, arguments: str, line: int) -> str:
        """Watch for the end of the arguments' JSON object; give what belongs to it."""
        if call.silent:
            arguments = arguments.lstrip()
            if not arguments:
                return ""
            call.silent = False
            if arguments[0] not in "{[":
                return arguments  # no object: never counted as whole
        elif not call.scanner.depth:
            return arguments
        encoded = arguments.encode()
        end = call.scanner.feed(encoded)
        call.scanner.buffer.clear()
        if end < 0:
            return arguments
        call.complete = True
        if end < len(encoded):
            self._notes.add("tool_arguments_trailing", line)
            return encoded[:end].decode()
        return arguments
