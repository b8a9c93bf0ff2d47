"""What a call costs: prices are made out once for a model, into whole numbers, and then only multiplied."""

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_CEILING, Decimal

from msgspec import Struct
from msgspec.structs import astuple

from trunkline.core.chat import Target
from trunkline.core.events import Usage
from trunkline.core.money import day_of, microusd
from trunkline.core.provider import Price
from trunkline.policy.price_table import PriceTable, tiers_of

PICO = 1_000_000
"""Prices of tokens are kept in millionths of a micro-dollar a token, which is dollars a million tokens, times this."""
CONFIGURED = "configuration"
OUTPUTS = ("output", "reasoning", "audio_output", "image_output")
MOST_KNOWN = 10_000
"""Of so many targets prices are remembered; clients may name any model where a pattern passes names on."""
SLOT_MS = 1_800_000
"""Prices that depend on the time of day change on the half hour."""


class TokenPrices(Struct, frozen=True):
    """What one token costs, in millionths of a micro-dollar, by kind; counts of a kind are not in the general ones.

    `request` is what a call costs beside its tokens.
    """

    input: int
    output: int
    cached: int
    cache_write: int
    cache_write_1h: int
    reasoning: int
    audio_input: int
    audio_output: int
    image_input: int
    image_output: int
    request: int
    cached_audio: int = 0
    """Jobs of before it was there have none, and no sound."""

    def of(self, prompt: int, completion: int) -> int:
        """Price a call whose tokens are of the general kinds, rounded up to whole micro-dollars."""
        return -(-(prompt * self.input + completion * self.output + self.request) // PICO)


class Tariff(Struct, frozen=True):
    """What a model costs. `version` says where the prices are from; it stands in every ledger row.

    Tokens: by the number of input tokens that a call must pass, ascending; empty: no price by tokens.
    Media: micro-dollars by tier, quality, size or `quality size`; under the empty name for all.
    """

    version: str
    tokens: tuple[tuple[int, TokenPrices], ...] = ()
    per_image: dict[str, int] = {}
    per_second: dict[str, int] = {}
    per_video: dict[str, int] = {}
    free: bool = False
    """Nothing of it costs anything."""

    @property
    def configured(self) -> bool:
        """Tell whether the operator set the price."""
        return self.version == CONFIGURED

    @property
    def plain(self) -> TokenPrices | None:
        """Give the prices by which the most that a text may cost is `of` its tokens; None: it takes more than that."""
        if len(self.tokens) != 1:
            return None
        price = self.tokens[0][1]
        alike = price.cache_write == price.cache_write_1h == price.input and price.audio_output == price.output
        return price if alike and price.reasoning <= price.output else None

    def of_tokens(self, usage: Usage) -> int | None:
        """Price what was counted, rounded up to whole micro-dollars; None: there is no price by tokens."""
        tiers, prompt = self.tokens, usage.prompt_tokens
        if not tiers:
            return None
        price = tiers[0][1] if len(tiers) == 1 else _tier(tiers, prompt)
        if (
            usage.cached_tokens
            or usage.cache_write_tokens
            or usage.audio_input_tokens
            or usage.image_input_tokens
            or usage.reasoning_tokens
            or usage.audio_output_tokens
            or usage.image_output_tokens
        ):
            return _of_kinds(price, usage)
        completion = usage.completion_tokens  # most calls
        if not prompt and not completion:
            return 0
        return price.of(prompt, completion)

    def of_images(self, number: int, shape: "Shape") -> int | None:
        """Price pictures; None: there is no price by the picture."""
        price = of_media(self.per_image, shape)
        return None if price is None else number * price

    def of_film(self, number: int, seconds: float, shape: "Shape") -> int | None:
        """Price films of so many seconds each; None: there is no price by the film or second."""
        if (price := of_media(self.per_video, shape)) is not None:
            return number * price
        second = of_media(self.per_second, shape)
        return None if second is None else number * math.ceil(seconds * second)


def _tier(tiers: Sequence[tuple[int, TokenPrices]], prompt_tokens: int) -> TokenPrices:
    """Give the prices of the tier that so many input tokens come to."""
    price = tiers[0][1]
    for start, dearer in tiers[1:]:
        if prompt_tokens > start:
            price = dearer
    return price


def _of_kinds(price: TokenPrices, usage: Usage) -> int:
    """Price tokens of several kinds, each once: sound or a picture that the cache held may be told under both names."""
    cached, written = usage.cached_tokens, usage.cache_write_tokens
    heard = min(usage.cached_audio_tokens, cached, usage.audio_input_tokens)
    longer = min(usage.cache_write_1h_tokens, written)
    room = usage.prompt_tokens - cached - written
    audio_in, image_in, plain_in = _share(room, usage.audio_input_tokens - heard, usage.image_input_tokens)
    reasoning = usage.reasoning_tokens
    beside = min(reasoning, max(0, usage.total_tokens - usage.prompt_tokens - usage.completion_tokens))
    room = usage.completion_tokens + beside - reasoning
    audio_out, image_out, plain_out = _share(room, usage.audio_output_tokens, usage.image_output_tokens)
    total = (
        plain_in * price.input
        + (cached - heard) * price.cached
        + heard * price.cached_audio
        + (written - longer) * price.cache_write
        + longer * price.cache_write_1h
        + audio_in * price.audio_input
        + image_in * price.image_input
        + plain_out * price.output
        + reasoning * price.reasoning
        + audio_out * price.audio_output
        + image_out * price.image_output
        + price.request
    )
    return -(-total // PICO)


def _share(room: int, sound: int, pictures: int) -> tuple[int, int, int]:
    """Give how much of the room on one side sound has, pictures have, and what is left has."""
    room = max(0, room)
    sound = min(sound, room)
    pictures = min(pictures, room - sound)
    return sound, pictures, room - sound - pictures


class Shape(Struct, frozen=True):
    """What a medium's price may depend on. Blank: not known."""

    tier: str = ""
    quality: str = ""
    size: str = ""
    """`WxH`"""


def of_media(prices: Mapping[str, int], shape: Shape) -> int | None:
    """Give one medium's price (or a second's): by the most exact name that fits, else the dearest; None: none."""
    if not prices:
        return None
    quality, size, tier = shape.quality, shape.size, shape.tier
    for name in (f"{quality} {size}", size, f"{quality} {tier}", quality, tier, ""):
        if (price := prices.get(name.strip().lower())) is not None:
            return price
    return max(prices.values())


ByTokens = tuple[str, tuple[tuple[int, TokenPrices], ...]]
"""Where prices are from, and the prices, as in `Tariff`."""


class PriceBook:
    """Tariffs by target. The shipped table is read when it is first needed."""

    def __init__(self, read_table: Callable[[], bytes]) -> None:
        self._read_table = read_table
        self._table: PriceTable | None = None
        self._known: dict[tuple[str, str], tuple[Price | None, Tariff | None]] = {}
        self._slot = 0

    def tariff(self, target: Target, price: Price | None, now_ms: int, source: str = CONFIGURED) -> Tariff | None:
        """Give what a target costs: by `price`, which is from `source`, else by the table; None: unknown."""
        slot = now_ms // SLOT_MS
        if slot != self._slot or len(self._known) >= MOST_KNOWN:
            self._known.clear()
            self._slot = slot
        known = self._known.get((target.provider, target.model))
        if known is not None and known[0] is price:
            return known[1]
        made = self._make(target, price or Price(), now_ms, source)
        self._known[target.provider, target.model] = (price, made)
        return made

    def _make(self, target: Target, given: Price, now_ms: int, source: str) -> Tariff | None:
        image, second, video = _by_name(given.per_image), _by_name(given.per_second), _by_name(given.per_video)
        version, tokens = _given(given, source) or self._from_table(target, now_ms) or (source, ())
        if not (tokens or image or second or video):
            return None
        prices = [*image.values(), *second.values(), *video.values(), *(any(astuple(kinds)) for _, kinds in tokens)]
        return Tariff(version, tokens, image, second, video, free=not any(prices))

    def _from_table(self, target: Target, now_ms: int) -> ByTokens | None:
        self._table = self._table or PriceTable(self._read_table())
        entry = self._table.find(target.base_url, target.model)
        if entry is None:
            return None
        minutes = now_ms // 60_000 % 1440
        day, time = day_of(now_ms), f"{minutes // 60:02d}:{minutes % 60:02d}"
        current = [price for price in entry.prices if price.in_force(day, time)]
        if not current or current[-1].input is None:
            return None
        tiers = tuple((start, _token_prices(usd)) for start, usd in tiers_of(current[-1]))
        return f"{self._table.source} {day} {entry.id}", tiers


def _given(price: Price, source: str) -> ByTokens | None:
    names = {
        "input": price.input_per_mtok,
        "output": price.output_per_mtok,
        "cached": price.cached_per_mtok,
        "cache_write": price.cache_write_per_mtok,
        "reasoning": price.reasoning_per_mtok,
        "audio_input": price.audio_input_per_mtok,
        "audio_output": price.audio_output_per_mtok,
        "image_input": price.image_input_per_mtok,
        "image_output": price.image_output_per_mtok,
    }
    given = {name: Decimal(str(usd)) for name, usd in names.items() if usd is not None}
    return (source, ((0, _token_prices(given)),)) if given else None


def _token_prices(usd: Mapping[str, Decimal]) -> TokenPrices:
    """Make out what each kind of token costs: what is not given costs what the general kind does, and the reverse."""
    free = Decimal(0)
    inputs, outputs = usd.get("input", usd.get("image_input", free)), usd.get("output", usd.get("image_output", free))
    general = {name: outputs if name in OUTPUTS else inputs for name in TokenPrices.__struct_fields__}
    general |= {"cached_audio": usd.get("cached", usd.get("audio_input", inputs))}
    general |= {"cache_write_1h": usd.get("cache_write", inputs), "request": free}
    return TokenPrices(**{name: _pico(usd.get(name, price)) for name, price in general.items()})


def _pico(usd: Decimal) -> int:
    return int((usd * PICO).to_integral_value(rounding=ROUND_CEILING))


def _by_name(usd: float | Mapping[str, float] | None) -> dict[str, int]:
    if usd is None:
        return {}
    named = usd if isinstance(usd, Mapping) else {"": usd}
    return {name.strip().lower(): microusd(price) for name, price in named.items()}
