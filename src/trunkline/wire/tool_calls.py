"""Putting an upstream's tool-call fragments together: which call a fragment belongs to, and when it is whole."""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from trunkline.core.events import Event, ToolCallDelta, ToolCallStarted, ToolKind
from trunkline.core.notes import Notes
from trunkline.wire.frame import UNREADABLE
from trunkline.wire.loose import TextJoin, as_raw
from trunkline.wire.scanner import Scanner

_NOTHING = ("{}", "null", '"{}"')


class _Call:
    """One call as it grows. Its arguments are whole when their JSON closes."""

    __slots__ = (
        "complete", "doubt", "empty", "extra", "grows", "held", "id", "join", "kind", "name", "number", "scanner",
        "silent", "sofar",
    )  # fmt: skip

    def __init__(self, kind: ToolKind) -> None:
        self.kind = kind
        self.number = -1  # until it has been told
        self.id = ""  # the wire's
        self.name = ""
        self.extra: dict[str, Raw] | None = None
        self.held: list[str] = []  # arguments, until the call is told
        self.silent = True  # no arguments so far
        self.empty = False  # but for `{}`, which may stand for nothing yet
        self.complete = False
        self.sofar: str | None = ""  # while each fragment may repeat all before it
        self.grows = False  # each does
        self.doubt = ""  # a fragment that does, unless the next one shows that it is a part like any other
        self.join = TextJoin()
        self.scanner = Scanner()

    @property
    def whole(self) -> bool:
        """Whether it may be complete, so that a name begins another call."""
        return self.complete or self.empty


class ToolCalls:
    """The tool calls of one choice. `salt` makes the ids that a provider left out.

    A call is told when its arguments begin, or when it is certain that none come: until then its name may grow. It is
    told at once where it has an id and the name of one of the request's `tools`, which begins no other's.
    """

    def __init__(self, choice: int, salt: str, notes: Notes, tools: Raw | None = None) -> None:
        self._tools = tools
        self._names: list[str] | None = None  # of the tools, once somebody has asked
        self._choice = choice
        self._salt = salt
        self._notes = notes
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._by_id: dict[str, _Call] = {}
        self._untold: list[_Call] = []
        self._ids: set[str] = set()
        self._told = 0

    def __len__(self) -> int:
        return self._told

    @property
    def pending(self) -> bool:
        """Whether there are calls, told or not."""
        return bool(self._calls)

    @property
    def nameless(self) -> bool:
        """Whether a call has arguments and no name, now that no more come."""
        return any(call.number < 0 and not call.silent for call in self._calls)

    @property
    def modern(self) -> bool:
        """Whether calls came as `tool_calls`: then a `function_call` beside them tells them again."""
        return any(call.kind != "legacy" for call in self._calls)

    @property
    def complete(self) -> bool:
        """Whether no call's arguments are cut."""
        return all(call.complete or call.silent or call.kind == "custom" for call in self._calls)

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
        if arguments is not None and type(arguments) is not str:
            self._notes.add("tool_arguments_object", line)
            arguments = bytes(as_raw(arguments)).decode()
        call = self._find(index, id, name, arguments or "", line)
        if call is None:
            self.tell(out, line)
            call = _Call(kind)
            self._calls.append(call)
            self._untold.append(call)
        if index is not None:
            self._by_index[index] = call
        if (id and id == call.id) or (name and call.name):
            self._notes.add("tool_call_restarted", line)
        if id and not call.id:
            call.id = id
            self._by_id.setdefault(id, call)
        call.extra = call.extra or extra
        if name:
            self._name(call, name)
        if arguments:
            if call.join.held or not arguments.isascii():
                arguments = call.join.feed(arguments)
            self._append(call, arguments, out, line)
        if call.number < 0 and call.name and (not call.silent or (call.id and self._is_tool(call.name))):
            self._tell(call, out, line)

    def _is_tool(self, name: str) -> bool:
        """Say whether a name is that of a tool of the request, and no part of another's."""
        if self._names is None:
            self._names = _names(self._tools) if self._tools is not None else []
        return [other for other in self._names if other.startswith(name)] == [name]

    def close(self, out: list[Event]) -> None:
        """Finish the choice: what was not told is told."""
        self.settle(out)
        self.tell(out)
        if self.nameless:
            self._notes.add("tool_call_unannounced")

    def fill(self, out: list[Event]) -> bool:
        """Give calls without arguments `{}`, now that none can come; say whether there are any."""
        silent = [call for call in self._calls if call.number >= 0 and call.silent and call.kind != "custom"]
        for call in silent:
            if not call.empty:
                self._notes.add("tool_arguments_empty")
            out.append(ToolCallDelta(call.number, "{}", self._choice))
            call.silent, call.complete = False, True
        return bool(silent)

    def settle(self, out: list[Event]) -> None:
        """Say that no more fragments come: what was in doubt is told."""
        for call in self._calls:
            doubt, sofar, call.doubt = call.doubt, call.sofar or "", ""
            if doubt:
                call.sofar = None
                self._append(call, doubt[len(sofar) :] if _is_json(doubt) else doubt, out, 0)

    def _find(self, index: int | None, id: str, name: str, arguments: str, line: int) -> _Call | None:  # noqa: A002
        """Give the call that a fragment continues, None if it begins one."""
        if index is None:
            self._notes.add("tool_index_missing", line)
            return self._find_unnumbered(id, name)
        call = self._by_index.get(index)
        if call is None:  # some count fragments, not calls
            last = self._calls[-1] if self._calls else None
            return last if arguments and not id and not name and last and last.name and not last.whole else None
        if id and call.id and id != call.id:
            known = self._by_id.get(id)
            if known is None and not call.whole and (not name or (not call.silent and arguments.lstrip()[:1] != "{")):
                return call  # each fragment has an id of its own
            self._notes.add("tool_index_repeated", line)
            return known
        if name and call.name and call.whole and not (id and id == call.id):
            self._notes.add("tool_index_repeated", line)
            return None
        return call

    def _find_unnumbered(self, id: str, name: str) -> _Call | None:  # noqa: A002
        if id:
            known = self._by_id.get(id)
            if known or name or not self._calls or self._calls[-1].id:
                return known
            return self._calls[-1]
        if not self._calls:
            return None
        last = self._calls[-1]
        return None if name and (last.whole or name != last.name) and last.name else last

    def _name(self, call: _Call, name: str) -> None:
        """Take a name, or more of it: it comes once, in pieces, or each time longer."""
        if call.number >= 0 or name == call.name:
            return
        call.name = name if name.startswith(call.name) else call.name + name

    def tell(self, out: list[Event], line: int = 0) -> None:
        """Tell the calls that have a name, whether or not their arguments have begun."""
        for call in self._untold.copy():
            if call.name:
                self._tell(call, out, line)

    def _tell(self, call: _Call, out: list[Event], line: int) -> None:
        if call.number >= 0:
            return
        self._untold.remove(call)
        call.number = self._told
        self._told += 1
        told = call.id
        if not told or told in self._ids:
            self._notes.add("tool_id_missing", line)
            told = f"call_{self._salt}{self._choice}_{call.number}"
        self._ids.add(told)
        out.append(ToolCallStarted(call.number, told, call.name, self._choice, call.kind, call.extra))
        out.extend(ToolCallDelta(call.number, piece, self._choice) for piece in call.held)
        call.held.clear()

    def _append(self, call: _Call, arguments: str, out: list[Event], line: int) -> None:
        if call.complete:
            self._notes.add("tool_arguments_trailing", line)
            return
        if call.kind == "custom":
            call.silent = False
        else:
            if call.sofar is not None:
                arguments = self._new(call, call.sofar, arguments, line)
            arguments = self._until_complete(call, arguments, line)
        if not arguments:
            return
        if call.number >= 0:
            out.append(ToolCallDelta(call.number, arguments, self._choice))
        else:
            call.held.append(arguments)

    def _new(self, call: _Call, sofar: str, arguments: str, line: int) -> str:
        """Give what is new in a fragment: some repeat the arguments so far.

        Where JSON can go on like that, the next fragment tells.
        """
        doubt, call.doubt = call.doubt, ""
        if doubt and not arguments.startswith(doubt):
            call.sofar = None
            return doubt + arguments
        if not sofar:
            call.sofar = arguments.lstrip()
        elif call.grows and sofar.startswith(arguments):
            return ""
        elif arguments == sofar:
            call.doubt = arguments
            return ""
        elif not (arguments.startswith(sofar) and len(arguments) > len(sofar)):
            call.sofar = None
        elif call.grows or doubt or sofar.rstrip()[-1] not in ":[,":
            self._notes.add("content_cumulative", line)
            call.grows = True
            call.sofar = arguments
            return arguments[len(sofar) :]
        else:
            call.doubt = arguments
            return ""
        return arguments

    def _until_complete(self, call: _Call, arguments: str, line: int) -> str:
        """Watch for the end of the arguments' JSON object; give what belongs to it."""
        if call.silent:
            arguments = _plain(arguments.strip() if call.empty else arguments.lstrip())
            if not arguments or arguments.rstrip() in _NOTHING:
                call.empty = call.empty or bool(arguments)
                call.sofar = ""
                return ""
            call.silent = call.empty = False
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


class _Named(Struct, frozen=True):
    name: str = ""


class _Tool(Struct):
    function: _Named = _Named()


def _names(tools: Raw) -> list[str]:
    """Give the names of a request's tools, each once; none where they are not as they should be."""
    try:
        read = msgspec.json.decode(tools, type=list[_Tool])
    except UNREADABLE:
        return []
    return list({tool.function.name: None for tool in read})


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except UNREADABLE:
        return False
    return True


def _plain(arguments: str) -> str:
    """Read arguments that were encoded twice."""
    if arguments[:2] not in ('"{', '"['):
        return arguments
    try:
        return msgspec.json.decode(arguments, type=str)
    except UNREADABLE:
        return arguments
