"""The work of the pool's processes: an order in, finished files out. Nothing here knows HTTP."""

import io
import multiprocessing
import os
import tempfile
import threading
from collections.abc import MutableSequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace
from PIL import Image, ImageOps

from trunkline.local.scene.compose import picture
from trunkline.local.scene.film import FilmOrder, film
from trunkline.local.scene.prompt import describe, parse
from trunkline.local.scene.words import lexicon

MAX_PIXELS = 4_500_000
"""Of a picture: as many as the 2K sizes have. Bigger given pictures are scaled down."""
CANCELLED = 255
"""In a film's place of the progress table: stop."""
Image.MAX_IMAGE_PIXELS = 40_000_000

_progress: MutableSequence[int] = []


class PictureOrder(Struct, frozen=True):
    """One picture. `size` None: that of the given picture."""

    prompt: str
    seed: int
    size: tuple[int, int] | None = None
    format: Literal["png", "jpeg", "webp"] = "png"
    quality: int = 90
    given: bytes = b""
    mask: bytes = b""
    """Of the given picture only the part that is transparent here is drawn on."""


class Made(Struct, frozen=True):
    """The file, what was drawn in words, and a film's cover (WebP)."""

    data: bytes
    text: str
    cover: bytes = b""


class BadPictureError(ValueError):
    """A given picture cannot be read; the message is for people."""


class CancelledFilmError(Exception):
    """The film is not wanted any more."""


def begin(progress: MutableSequence[int]) -> None:
    """Set up a process of the pool, which ends when the server does."""
    global _progress  # noqa: PLW0603 - shared memory can only be handed to a process at its start
    _progress = progress
    lexicon()  # read now, not with the first picture
    parent = multiprocessing.parent_process()
    if parent:
        threading.Thread(target=_end_with, args=[parent], daemon=True).start()


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(0)


def make_picture(order: PictureOrder) -> Made:
    """Draw and encode one picture. Raises BadPictureError."""
    under = _opened(order.given, order.size) if order.given else None
    size = under.size if under else order.size or (1024, 1024)
    image = picture(parse(order.prompt), size, order.seed, _encoded(under, "png") if under else b"")
    if under and order.mask:
        image = Image.composite(under, image, _opened(order.mask, size, "RGBA").getchannel("A"))
    return Made(_encoded(image, order.format, order.quality), _told(order))


def make_film(order: FilmOrder, place: int) -> Made:
    """Draw and encode one film; `place` is its row in the progress table.

    Raises BadPictureError, CancelledFilmError, and av.FFmpegError.
    """

    def progress(percent: int) -> None:
        if _progress[place] == CANCELLED:
            raise CancelledFilmError
        _progress[place] = max(1, percent)

    if order.given:
        order = replace(order, given=_encoded(_opened(order.given, order.size), "png"))
    with tempfile.TemporaryDirectory(prefix="trunkline-scene-") as folder:
        target = Path(folder) / "film.mp4"
        cover = film(order, target, progress)
        return Made(target.read_bytes(), _told(order), _encoded(cover, "webp"))


def _told(order: PictureOrder | FilmOrder) -> str:
    return f"{describe(parse(order.prompt))} Seed: {order.seed}."


def _opened(data: bytes, size: tuple[int, int] | None, mode: str = "RGB") -> Image.Image:
    """Read a client's picture and cut it to `size` (None: its own, within the limits)."""
    try:
        with Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "WEBP", "GIF")) as opened:
            image = ImageOps.exif_transpose(opened).convert(mode)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise BadPictureError(f"The picture cannot be read: {error}.") from error
    if size is None:
        shrink = min(1.0, (MAX_PIXELS / (image.width * image.height)) ** 0.5)
        size = max(1, int(image.width * shrink)), max(1, int(image.height * shrink))
    return ImageOps.fit(image, size)


def _encoded(image: Image.Image, form: str, quality: int = 90) -> bytes:
    out = io.BytesIO()
    options: dict[str, int] = {"compress_level": 4} if form == "png" else {"quality": quality}
    image.save(out, form, **options)
    return out.getvalue()
