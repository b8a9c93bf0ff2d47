"""Parameters at the end of a model's name, as relays write them: `a-film-16x9-8s`, `an-image-2K` (wire.md 11)."""

import re
from collections.abc import Iterator

from trunkline.ingress.media_words import SIZE, Found, read_value

_WORD = re.compile(
    r"-(?:(?P<size>0?\.5k|[124]k|512|\d{3,4}p|\d{1,2}[x:]\d{1,2}|landscape|portrait|square|\d{3,4}x\d{3,4})"
    r"|(?P<seconds>\d{1,2}s)|(?P<quality>hd|fast|pro))\Z",
    re.IGNORECASE,
)
_MOST = 4


def bases(name: str) -> Iterator[str]:
    """Give the names that this one may be made of, longest first: only for a name that nobody knows as it is.

    Behind a provider's name `-pro` and `-fast` are left: the provider may have such a model.
    """
    for _ in range(_MOST):
        found = _WORD.search(name)
        if found is None or not found.start() or (found["quality"] and "/" in name):
            return
        name = name[: found.start()]
        yield name


def read_suffix(suffix: str) -> list[Found]:
    """Read what `bases` has cut off, as `-2K-16x9`; all of it was said by `model`."""
    found: list[Found] = []
    while match := _WORD.search(suffix):
        meaning, value = next((name, text) for name, text in match.groupdict().items() if text)
        value = value.lower() if meaning == "quality" else value
        one = read_value(SIZE if meaning == "size" else meaning, value, "model")
        found += [one] if one is not None else []
        suffix = suffix[: match.start()]
    return found[::-1]
