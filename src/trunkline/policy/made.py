"""What was made, as far as its price depends on it: a picture's or a film's shape, as asked for, else as it is."""

from msgspec import Struct

from trunkline.core.media import MediaRecord, MediaRequest
from trunkline.policy.price import Shape, Tariff

USUAL_SECONDS = 10.0
"""The length of a film when neither the request nor the catalogue says it."""
TIERS = ((768, "512"), (1600, "1k"), (3300, "2k"))
"""A picture's tier by its longer side."""
FILM_TIERS = ((500, "480p"), (800, "720p"), (1100, "1080p"))


class Made(Struct, frozen=True):
    """One picture or film."""

    shape: Shape
    film_s: float | None = None
    """A film's length; None: it is a picture."""


def made_of(request: MediaRequest, medium: MediaRecord) -> Made:
    """Give what a kept medium is to its price."""
    shape = asked_shape(request, _tier(medium), f"{medium.width}x{medium.height}")
    film = medium.kind == "video"
    return Made(shape, (medium.duration_s or usual_seconds(request)) if film else None)


def lost_of(request: MediaRequest) -> Made:
    """Give what a medium would have been that was made, and could not be kept."""
    film = request.kind == "video"
    return Made(asked_shape(request, ""), usual_seconds(request) if film else None)


def usual_seconds(request: MediaRequest) -> float:
    """Give the length of a film that nobody has seen."""
    return request.seconds or request.usual_seconds or USUAL_SECONDS


def price_of(tariff: Tariff, made: Made) -> int | None:
    """Give the price of one; None: there is none by picture, film or second."""
    if made.film_s is not None:
        return tariff.of_film(1, made.film_s, made.shape)
    return tariff.of_images(1, made.shape)


def asked_shape(request: MediaRequest, tier: str, size: str = "") -> Shape:
    """Give what a price may depend on: as it was asked for, else as it is."""
    asked = f"{request.width}x{request.height}" if request.width and request.height else size
    return Shape(tier=request.tier or tier, quality=request.quality or "", size=asked)


def _tier(medium: MediaRecord) -> str:
    """Give the tier of a medium that was asked for without one."""
    if medium.kind == "video":
        side = min(medium.width, medium.height)
        return next((tier for most, tier in FILM_TIERS if side <= most), "4k")
    side = max(medium.width, medium.height)
    return next((tier for most, tier in TIERS if side <= most), "4k")
