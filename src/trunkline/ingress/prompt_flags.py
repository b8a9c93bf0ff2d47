"""Flags in a prompt: `a cat --ar 16:9`, `{n:2}`; what is no flag of ours stays the prompt's (wire.md section 11)."""

import re
from collections.abc import Iterator

from msgspec import Struct

from trunkline.ingress.media_words import FLAGS, QUALITIES, Found, meaning_of, plain, read_value

_PAIR = r"\d+(?:\.\d+)?[ \t]{0,2}[:：/xX×*][ \t]{0,2}\d+(?:\.\d+)?"
_QUOTED = r"\"[^\"\n]{1,200}\"|'[^'\n]{1,200}'|“[^”\n]{1,200}”"
_BEFORE = r"(?:^|(?<=[\s\u3000-\u9fff\uff00-\uffef]))"
"""What a flag may stand behind: Chinese and Japanese leave no blanks."""
_FLAG = re.compile(
    rf"{_BEFORE}(?P<name>(?:--?|[—–]{{1,2}})[A-Za-z][A-Za-z_-]{{0,30}})(?:=|\s{{1,8}})"
    rf"(?P<value>{_PAIR}|{_QUOTED}|[^\s\"']{{1,60}})(?=\s|$)"
)
_NO = re.compile(
    rf"{_BEFORE}(?P<name>(?:--|[—–]{{1,2}})no)(?:=|[ \t]{{1,8}})(?P<value>\S[^\n]{{0,1000}}?)"
    r"(?=\s+(?:--?|[—–]{1,2})[A-Za-z]|\s*\{|\s*$)",
    re.MULTILINE,
)
_BRACED = re.compile(r"\{[ \t]*(?P<name>[A-Za-z][A-Za-z_-]{0,30})[ \t]*[:：=][ \t]*(?P<value>[^{}\n]{1,60}?)[ \t]*\}")


class Flag(Struct, frozen=True):
    """A flag, and where it stands in the prompt."""

    found: Found
    start: int
    end: int


def take_flags(prompt: str, kind: str) -> tuple[str, tuple[Found, ...]]:
    """Take the known flags with good values out of a prompt, each with a blank beside it; all others stay.

    Flags at the end of the prompt count before the same ones within it, which then are text.
    """
    flags = list(_apart(sorted(_flags(prompt, kind), key=lambda flag: flag.start)))
    if not flags:
        return prompt, ()
    tail = _tail(prompt, flags)
    said = {flag.found.meaning for flag in tail}
    taken = [flag for flag in flags if flag in tail or flag.found.meaning not in said]
    for flag in reversed(taken):
        before, after = prompt[: flag.start], prompt[flag.end :]
        if before[-1:] in {" ", "\t"} and (not after or after[0].isspace()):
            before = before[:-1]
        elif not before or before[-1] == "\n":
            after = after.removeprefix(" ")
        prompt = before + after
    return prompt.strip(), tuple(flag.found for flag in taken)


def _flags(prompt: str, kind: str) -> Iterator[Flag]:
    for pattern in (_NO, _FLAG, _BRACED):
        for match in pattern.finditer(prompt):
            found = _read(pattern, match["name"], match["value"], kind)
            if found is not None:
                yield Flag(found, match.start(), match.end())


def _read(pattern: re.Pattern[str], name: str, value: str, kind: str) -> Found | None:
    if pattern is _NO:
        return Found("negative", value.strip(), "--no")
    meaning = meaning_of(name, kind, FLAGS)
    # any word would do for a quality, so that only known ones are told from the words of a prompt
    if meaning is None or (meaning == "quality" and plain(value.strip("\"'“”")) not in QUALITIES):
        return None
    return read_value(meaning, value, f"{{{name}}}" if pattern is _BRACED else f"--{name.lstrip('-—–')}")


def _apart(flags: list[Flag]) -> Iterator[Flag]:
    """Leave out flags that begin within another."""
    end = 0
    for flag in flags:
        if flag.start >= end:
            end = flag.end
            yield flag


def _tail(prompt: str, flags: list[Flag]) -> list[Flag]:
    """Give the flags after which nothing but flags follows."""
    tail: list[Flag] = []
    end = len(prompt)
    for flag in reversed(flags):
        if prompt[flag.end : end].strip():
            break
        tail.append(flag)
        end = flag.start
    return tail
