"""What was asked for, held against what the model takes: refused with what is allowed, or said in its own words."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from trunkline.core.errors import GatewayError
from trunkline.core.media import MediaRequest
from trunkline.core.provider import ModelFacts, ModelKind
from trunkline.ingress.media_words import Found
from trunkline.wire.media_size import SIDES, distance, nearest_ratio, nearest_tier, pixels, read_pixels, value_of

MOST = 10
"""Pictures or films in one call."""
MOST_FILMS = 4
ANY = "*x*"
NEAR = 0.02
"""How far a size's ratio may be from the one asked for: |log|."""
ROUGHLY = 0.05
"""How far pixels may be from a ratio that stands for them: 1792x1024 is 16:9."""
MOST_PARTIAL = 3
Said = Mapping[str, tuple[Found, int]]


def fit(said: Said, facts: ModelFacts, kind: ModelKind, request: MediaRequest) -> MediaRequest:
    """Complete a request. Raises GatewayError `invalid_value` that names the spelling and what is allowed."""
    request = _sized(_shape(said), facts, kind, request)
    wanted = _value(said, "format")
    native = not facts.formats or wanted in facts.formats
    return replace(
        request,
        n=_count(said, kind),
        output_format=wanted if native else None,
        convert_to=None if native else wanted,
        quality=_listed(said, "quality", facts.qualities),
        background=_value(said, "background"),
        seconds=_number(said, "seconds", facts.seconds),
        fps=_number(said, "fps", facts.fps),
        seed=_value(said, "seed"),
        negative_prompt=_value(said, "negative"),
        audio=_value(said, "audio"),
        partial_images=_partial(said),
        user=_value(said, "user"),
    )


def _shape(said: Said) -> dict[str, Found]:
    """Give what counts of pixels, ratio and tier. Where pixels stand beside a ratio, the higher level counts."""
    shape = {name: said[name] for name in ("pixels", "ratio", "tier") if name in said}
    if "width" in said and "height" in said:
        width, level = said["width"]
        height = said["height"][0]
        both = Found("pixels", (int(width.value), int(height.value)), width.spelling)  # type: ignore[arg-type]
        if "pixels" not in shape or shape["pixels"][1] > level:
            shape["pixels"] = both, level
    elif "width" in said or "height" in said:
        alone = (said.get("width") or said["height"])[0].spelling
        raise _refused(alone, "needs the other side too: `width` and `height`")
    if "pixels" in shape:
        given, level = shape["pixels"]
        for name in ("ratio", "tier"):
            if name not in shape:
                continue
            other, other_level = shape[name]
            if other_level < level:
                del shape["pixels"]
                break
            if name == "ratio" and other_level == level and not _agree(given, other):
                raise _refused(other.spelling, f"says {other.value}, and `{given.spelling}` has another ratio")
            del shape[name]
    return {name: found for name, (found, _) in shape.items()}


def _sized(shape: Mapping[str, Found], facts: ModelFacts, kind: ModelKind, request: MediaRequest) -> MediaRequest:
    """Check pixels, ratio and tier; a model that knows only sizes is asked for the one that fits."""
    tier, ratio = shape.get("tier"), shape.get("ratio")
    request = replace(
        request,
        tier=_tier(tier, facts.tiers, kind),
        ratio=_ratio(ratio, facts.ratios) if ratio and facts.ratios else str(ratio.value) if ratio else None,
    )
    if "pixels" in shape:
        size = _size_of(shape["pixels"])
        if facts.ratios and not facts.sizes:
            return _by_ratio(shape["pixels"].spelling, size, facts, request)
        _check_pixels(shape["pixels"], size, facts)
        return replace(request, width=size[0], height=size[1])
    if ratio is None or facts.ratios or not facts.sizes:
        return request
    if ANY in facts.sizes:
        usual = "720p" if kind == "video" else "1K"
        width, height = pixels(request.ratio or "1:1", request.tier or usual, step=facts.size_step)
        return replace(request, width=width, height=height)
    listed = [size for size in map(read_pixels, facts.sizes) if size is not None]
    fitting = [size for size in listed if distance(size[0] / size[1], value_of(str(ratio.value))) <= NEAR]
    if not fitting:
        raise _refused(ratio.spelling, f"is {ratio.value}; this model makes {', '.join(facts.sizes)}")
    return replace(request, width=fitting[0][0], height=fitting[0][1])


def _by_ratio(spelling: str, size: tuple[int, int], facts: ModelFacts, request: MediaRequest) -> MediaRequest:
    """Say pixels as the ratio and tier that they are, for a model that knows only those."""
    text, ratio = f"{size[0]}x{size[1]}", nearest_ratio(*size, facts.ratios)
    if distance(size[0] / size[1], value_of(ratio)) > ROUGHLY:
        raise _refused(spelling, f"is {text}; its ratio must be one of {', '.join(facts.ratios)}")
    tier = None
    if facts.tiers:
        tiers = SIDES if request.kind == "image" else facts.tiers
        tier = nearest_tier(*size, tiers)
        if tier not in facts.tiers:
            raise _refused(spelling, f"is {text}, about {tier}; allowed is {', '.join(facts.tiers)}")
    return replace(request, ratio=ratio, tier=tier)


def _check_pixels(found: Found, size: tuple[int, int], facts: ModelFacts) -> None:
    text = f"{size[0]}x{size[1]}"
    if facts.sizes and ANY not in facts.sizes and text not in facts.sizes:
        raise _refused(found.spelling, f"is {text}; allowed is {', '.join(facts.sizes)}")
    if size[0] % facts.size_step or size[1] % facts.size_step:
        raise _refused(found.spelling, f"is {text}; width and height must be multiples of {facts.size_step}")
    most = read_pixels(facts.size_max)
    if most and (max(size) > max(most) or min(size) > min(most)):
        raise _refused(found.spelling, f"is {text}; at most {facts.size_max} is allowed")
    if max(size) > 16_384:
        raise _refused(found.spelling, f"is {text}; no side may pass 16384 pixels")


def _tier(found: Found | None, tiers: Sequence[str], kind: ModelKind) -> str | None:
    if found is None:
        return None
    word = str(found.value)
    if not tiers:
        return word.lower() if kind == "video" else word
    listed = next((tier for tier in tiers if tier.lower() == word.lower()), None)
    if listed is None:
        raise _refused(found.spelling, f"is {word}; allowed is {', '.join(tiers)}")
    return listed


def _ratio(found: Found, ratios: Sequence[str]) -> str:
    word = str(found.value)
    if word in ratios:
        return word
    same = next((ratio for ratio in ratios if distance(value_of(ratio), value_of(word)) < 1e-6), None)
    if same is None:
        raise _refused(found.spelling, f"is {word}; allowed is {', '.join(ratios)}")
    return same


def _count(said: Said, kind: ModelKind) -> int:
    if "n" not in said:
        return 1
    found, most = said["n"][0], MOST_FILMS if kind == "video" else MOST
    if int(found.value) > most:  # type: ignore[arg-type]
        raise _refused(found.spelling, f"is {found.value}; allowed is 1 to {most}")
    return int(found.value)  # type: ignore[arg-type]


def _partial(said: Said) -> int:
    if "partial" not in said:
        return 0
    found = said["partial"][0]
    if int(found.value) > MOST_PARTIAL:  # type: ignore[arg-type]
        raise _refused(found.spelling, f"is {found.value}; allowed is 0 to {MOST_PARTIAL}")
    return int(found.value)  # type: ignore[arg-type]


def _listed(said: Said, name: str, allowed: Sequence[str]) -> str | None:
    if name not in said:
        return None
    found = said[name][0]
    word = str(found.value)
    listed = next((one for one in allowed if one.lower() == word.lower()), None) if allowed else word
    if listed is None:
        raise _refused(found.spelling, f"is {word[:60]}; allowed is {', '.join(allowed)}")
    return listed


def _number(said: Said, name: str, allowed: Sequence[float]) -> Any:
    if name not in said:
        return None
    found = said[name][0]
    if allowed and found.value not in allowed:
        shown = ", ".join(f"{one:g}" for one in allowed)
        raise _refused(found.spelling, f"is {found.value:g}; allowed is {shown}")
    return found.value


def _value(said: Said, name: str) -> Any:
    return said[name][0].value if name in said else None


def _agree(given: Found, ratio: Found) -> bool:
    width, height = _size_of(given)
    return distance(width / height, value_of(str(ratio.value))) <= NEAR


def _size_of(found: Found) -> tuple[int, int]:
    assert isinstance(found.value, tuple)  # noqa: S101 - as `read_pixels` gives it
    return found.value


def _refused(spelling: str, what: str) -> GatewayError:
    return GatewayError("invalid_value", f"`{spelling}` {what}.", param=spelling)
