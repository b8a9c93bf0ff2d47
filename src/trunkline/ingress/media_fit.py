"""What was asked for, held against what the model takes: refused with what is allowed, or said in its own words."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from trunkline.core.errors import GatewayError
from trunkline.core.media import MediaRequest
from trunkline.core.provider import ModelFacts, ModelKind
from trunkline.ingress.media_shape import Said, Shape, refused, sized
from trunkline.ingress.media_words import QUALITIES

TELLING: dict[str, Callable[[MediaRequest], Any]] = {
    "seed": lambda request: request.seed,
    "quality": lambda request: request.quality,
    "background": lambda request: request.background,
    "fps": lambda request: request.fps,
    "audio": lambda request: request.audio,
}
"""What not every provider has a place for, by meaning."""
AS_ALWAYS = {"quality": ("standard",), "background": ("opaque",)}
"""Values that ask for what comes anyway."""
MOST = 10
"""Pictures or films in one call."""
MOST_FILMS = 4
MOST_PARTIAL = 3
MOST_SECONDS = 60
MOST_FPS = 120
"""Of a film, where the model's table does not say."""


def fit(said: Said, facts: ModelFacts, kind: ModelKind, request: MediaRequest) -> MediaRequest:
    """Complete a request. Raises GatewayError `invalid_value` that names the spelling and what is allowed."""
    request = sized(Shape(said, kind), facts, request)
    wanted = _format(said, kind)
    native = not facts.formats or wanted in facts.formats
    return replace(
        request,
        n=_upto(said, "n", 1, MOST_FILMS if kind == "video" else MOST, 1),
        output_format=wanted if native else None,
        convert_to=None if native else wanted,
        quality=_quality(said, facts.qualities),
        background=_value(said, "background"),
        seconds=_number(said, "seconds", facts.seconds, MOST_SECONDS),
        usual_seconds=facts.usual_seconds,
        usual_size=facts.usual_size,
        fps=_number(said, "fps", facts.fps, MOST_FPS),
        seed=_value(said, "seed"),
        negative_prompt=_value(said, "negative"),
        audio=_value(said, "audio"),
        partial_images=_upto(said, "partial", 0, MOST_PARTIAL, 0),
        user=_value(said, "user"),
        spelled={name: said[name][0].spelling for name in TELLING if name in said},
    )


def hold_against(request: MediaRequest, lacks: Collection[str]) -> MediaRequest:
    """Hold a request against what its provider's language has no place for.

    Former pictures are left out where none is taken. Raises GatewayError `invalid_value` for what the client asked for.
    """
    for name, read in TELLING.items():
        value = read(request)
        if name in lacks and value is not None and value not in AS_ALWAYS.get(name, ()):
            spelling = request.spelled.get(name, name)
            shown = str(value).lower() if isinstance(value, bool) else str(value)[:60]
            told = f"`{spelling}` is {shown}; this model takes no {name}: leave it out."
            raise GatewayError("invalid_value", told, param=spelling)
    inputs = request.inputs
    if "mask" in lacks and any(one.role == "mask" for one in inputs):
        raise GatewayError("invalid_value", "`mask` is not taken by this model: leave it out.", param="mask")
    if "inputs" in lacks:
        inputs = tuple(one for one in inputs if not one.former)
        if inputs:
            raise GatewayError("invalid_value", "This model takes no pictures: only words.", param="image")
    kept = {name: None for name in TELLING if name in lacks}
    return replace(request, inputs=inputs, **kept)


def _format(said: Said, kind: ModelKind) -> str | None:
    """Give the file type of pictures; films are mp4, which may be said."""
    if "format" not in said:
        return None
    found = said["format"][0]
    if (found.value == "mp4") != (kind == "video"):
        allowed = "mp4" if kind == "video" else "png, jpeg, webp"
        raise refused(found, f"is {found.value}; allowed is {allowed}")
    return None if kind == "video" else str(found.value)


def _upto(said: Said, name: str, least: int, most: int, otherwise: int) -> int:
    if name not in said:
        return otherwise
    found = said[name][0]
    number = int(found.value)  # type: ignore[arg-type]
    if number > most:
        raise refused(found, f"is {number}; allowed is {least} to {most}")
    return number


def _quality(said: Said, allowed: Sequence[str]) -> str | None:
    """Give the model's own word for a quality."""
    if "quality" not in said:
        return None
    found = said["quality"][0]
    word = str(found.value)
    if not allowed:
        return word
    known: Mapping[str, str] = {one.lower(): one for one in allowed}
    same = next((one for one in (word.lower(), *QUALITIES.get(word.lower(), ())) if one in known), None)
    if same is None:
        raise refused(found, f"is {word[:60]}; allowed is {', '.join(allowed)}")
    return known[same]


def _number(said: Said, name: str, allowed: Sequence[float], most: int) -> Any:
    if name not in said:
        return None
    found = said[name][0]
    if allowed and found.value not in allowed:
        shown = ", ".join(f"{one:g}" for one in allowed)
        raise refused(found, f"is {found.value:g}; allowed is {shown}")
    if float(found.value) > most:  # type: ignore[arg-type]
        raise refused(found, f"is {found.value:g}; at most {most} is allowed")
    return found.value


def _value(said: Said, name: str) -> Any:
    return said[name][0].value if name in said else None
