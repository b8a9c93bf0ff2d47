"""Ratio, tier and pixels: what a client said of them, put together, and told to a model as it takes them."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from trunkline.core.errors import GatewayError
from trunkline.core.media import MediaRequest
from trunkline.core.provider import ModelFacts, ModelKind
from trunkline.ingress.media_words import Found
from trunkline.wire.media_size import (
    SIDES,
    TABLE_1K,
    distance,
    lines,
    nearest_ratio,
    nearest_tier,
    pixels,
    read_pixels,
    value_of,
)

Said = Mapping[str, tuple[Found, int]]
"""What counts for each meaning, with its level: 0 is the most explicit place."""
ANY = "*x*"
EQUAL = 1e-6
NEAR = 0.03
"""How far pixels may be from a ratio that is said beside them: |log|; 1376x768 is 16:9."""
ROUGHLY = 0.05
"""How far pixels may be from a ratio that stands for them: 1792x1024 is 16:9."""
LONGEST_SIDE = 16_384
FILM_TIERS = ("480p", "720p", "1080p", "2k", "4k")
USUAL_TIER, USUAL_FILM_TIER = "1K", "720p"


class Shape:
    """What counts of ratio, tier and pixels. Pixels say both others; each is taken from its highest level."""

    def __init__(self, said: Said, kind: ModelKind) -> None:
        """Raise GatewayError `invalid_value` when pixels contradict what stands beside them."""
        self.film = kind == "video"
        self.pixels = _pixels(said)
        self.ratio: Found | None = None
        self.tier: Found | None = None
        exact = self.pixels
        ratio, tier = said.get("ratio"), said.get("tier")
        if exact is not None:
            self._agree(exact, ratio, tier)
        by_pixels = [one is None or (exact is not None and exact[1] <= one[1]) for one in (ratio, tier)]
        if exact is not None and all(by_pixels):
            return
        self.pixels = None
        self.ratio = exact[0] if exact and by_pixels[0] else ratio[0] if ratio else None
        self.tier = exact[0] if exact and by_pixels[1] else tier[0] if tier else None

    def _agree(self, exact: tuple[Found, int], ratio: tuple[Found, int] | None, tier: tuple[Found, int] | None) -> None:
        size = size_of(exact[0])
        if ratio and ratio[1] == exact[1] and distance(size[0] / size[1], value_of(str(ratio[0].value))) > NEAR:
            raise refused(ratio[0], f"says {ratio[0].value}, and `{exact[0].spelling}` has another ratio; say it once")
        if tier and tier[1] == exact[1] and self.tier_of(size).lower() != str(tier[0].value).lower():
            raise refused(tier[0], f"says {tier[0].value}, and `{exact[0].spelling}` has another size; say it once")

    def tier_of(self, size: tuple[int, int]) -> str:
        """Give the usual tier of pixels."""
        return nearest_tier(*size, FILM_TIERS if self.film else SIDES)


def sized(shape: Shape, facts: ModelFacts, request: MediaRequest) -> MediaRequest:
    """Put ratio, tier or pixels into a request, as the model takes them. Raises GatewayError `invalid_value`."""
    exact = shape.pixels[0] if shape.pixels else None
    if exact is None and shape.ratio is None and shape.tier is None:
        return replace(request, tier=facts.tier or None)
    if facts.sizes and ANY not in facts.sizes:
        width, height = _of_table(shape, exact, facts)
        return replace(request, width=width, height=height)
    if exact is not None and (ANY in facts.sizes or not facts.ratios):
        size = _checked(exact, size_of(exact), facts)
        tier = nearest_tier(*size, facts.tiers) if facts.tiers else None
        return replace(request, width=size[0], height=size[1], tier=tier)
    ratio, tier = _ratio(exact or shape.ratio, facts.ratios), _tier(shape, exact or shape.tier, facts)
    if ANY in facts.sizes:
        usual = USUAL_FILM_TIER if shape.film else USUAL_TIER
        size = pixels(ratio or ("16:9" if shape.film else "1:1"), tier or usual, step=facts.size_step)
        why = exact or shape.ratio or shape.tier
        size = _checked(why, size, facts) if why else size
        return replace(request, width=size[0], height=size[1], tier=tier if facts.tiers else None)
    return replace(request, ratio=ratio, tier=facts.tier or None if len(facts.tiers) == 1 else tier)


def _pixels(said: Said) -> tuple[Found, int] | None:
    """Give the pixels, also from `width` and `height`, which go together."""
    exact = said.get("pixels")
    if "width" not in said and "height" not in said:
        return exact
    if "width" not in said or "height" not in said:
        raise refused((said.get("width") or said["height"])[0], "needs the other side too: `width` and `height`")
    (width, level), (height, _) = said["width"], said["height"]
    both = Found("pixels", (int(width.value), int(height.value)), width.spelling)  # type: ignore[arg-type]
    if exact is not None and exact[1] == level and exact[0].value != both.value:
        raise refused(exact[0], "and `width` with `height` say different pixels; say it once")
    return exact if exact is not None and exact[1] <= level else (both, level)


def _of_table(shape: Shape, exact: Found | None, facts: ModelFacts) -> tuple[int, int]:
    """Choose the pixels of a model that makes only those of its table."""
    table = [size for text in facts.sizes if (size := read_pixels(text))]
    listed = ", ".join(facts.sizes)
    if exact is not None:
        if size_of(exact) not in table:
            raise refused(exact, f"is {shown(exact)}; allowed is {listed}")
        return size_of(exact)
    fitting = table
    if shape.ratio is not None:
        asked = _as_ratio(shape.ratio)
        fitting = [size for size in fitting if distance(size[0] / size[1], asked) <= ROUGHLY]
        if not fitting:
            raise refused(shape.ratio, f"is {shown(shape.ratio)}; this model makes {listed}")
    if shape.tier is not None:
        tier = shown_tier(shape, shape.tier)
        fitting = [size for size in fitting if _is_of(shape, size, tier)]
        if not fitting:
            raise refused(shape.tier, f"is {shown(shape.tier)}; this model makes {listed}")
    return fitting[0]


def _is_of(shape: Shape, size: tuple[int, int], tier: str) -> bool:
    short = lines(tier.lower()) if shape.film else None
    return min(size) == short if short else shape.tier_of(size) == tier


def _as_ratio(found: Found) -> float:
    if isinstance(found.value, tuple):
        return found.value[0] / found.value[1]
    return value_of(str(found.value))


def _ratio(found: Found | None, ratios: Sequence[str]) -> str | None:
    if found is None:
        return None
    if isinstance(found.value, tuple):
        ratio = nearest_ratio(*found.value, ratios or TABLE_1K)
        if ratios and distance(_as_ratio(found), value_of(ratio)) > ROUGHLY:
            raise refused(found, f"is {shown(found)}; its ratio must be one of {', '.join(ratios)}")
        return ratio
    word = str(found.value)
    if not ratios or word in ratios:
        return word
    same = next((ratio for ratio in ratios if distance(value_of(ratio), value_of(word)) < EQUAL), None)
    if same is None:
        raise refused(found, f"is {word}; allowed is {', '.join(ratios)}")
    return same


def shown_tier(shape: Shape, found: Found) -> str:
    """Give the tier that is meant: pixels stand for one."""
    return shape.tier_of(found.value) if isinstance(found.value, tuple) else str(found.value)


def _tier(shape: Shape, found: Found | None, facts: ModelFacts) -> str | None:
    if found is None:
        return facts.tier or None
    by_pixels = isinstance(found.value, tuple)
    if by_pixels and not facts.tiers:
        return None
    if by_pixels and shape.film:
        return nearest_tier(*size_of(found), facts.tiers)
    word = shown_tier(shape, found)
    if not facts.tiers:
        return word.lower() if shape.film else word
    listed = next((tier for tier in facts.tiers if tier.lower() == word.lower()), None)
    if listed is None:
        about = f"is {shown(found)}, about {word}" if by_pixels else f"is {word}"
        raise refused(found, f"{about}; allowed is {', '.join(facts.tiers)}")
    return listed


def _checked(found: Found, size: tuple[int, int], facts: ModelFacts) -> tuple[int, int]:
    text, step, most = f"{size[0]}x{size[1]}", facts.size_step, read_pixels(facts.size_max)
    if size[0] % step or size[1] % step:
        raise refused(found, f"is {text}; width and height must be multiples of {step}")
    if most and (max(size) > max(most) or min(size) > min(most)):
        raise refused(found, f"is {text}; at most {facts.size_max} is allowed")
    if max(size) > LONGEST_SIDE:
        raise refused(found, f"is {text}; no side may pass {LONGEST_SIDE} pixels")
    return size


def size_of(found: Found) -> tuple[int, int]:
    """Give what was said as pixels."""
    assert isinstance(found.value, tuple)  # noqa: S101 - as `read_pixels` gives it
    return found.value


def shown(found: Found) -> str:
    """Write a value for a message."""
    value = found.value
    return f"{value[0]}x{value[1]}" if isinstance(value, tuple) else str(value)


def refused(found: Found, what: str) -> GatewayError:
    """Give the error that names the client's spelling."""
    return GatewayError("invalid_value", f"`{found.spelling}` {what}.", param=found.spelling)
