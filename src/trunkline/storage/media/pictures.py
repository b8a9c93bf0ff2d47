"""Pictures by Pillow: size, conversion. Every file is hostile until looked at."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from trunkline.core.errors import GatewayError
from trunkline.core.media import MediaFacts

if TYPE_CHECKING:
    from PIL import Image

MAX_PIXELS = 100_000_000
FORMATS = {
    "image/png": "PNG", "image/jpeg": "JPEG", "image/webp": "WEBP", "image/gif": "GIF",
    "image/avif": "AVIF", "image/bmp": "BMP", "image/tiff": "TIFF",
}  # fmt: skip
_SAVE: dict[str, dict[str, int]] = {"JPEG": {"quality": 92}, "WEBP": {"quality": 92}}


def picture_facts(path: Path, mime_type: str) -> MediaFacts:
    """Read a picture's size, and see that it is whole; only a small copy is decoded where the format allows."""
    with decoding("picture"), _opened(path, mime_type) as picture:
        facts = MediaFacts(mime_type=mime_type, width=picture.width, height=picture.height)
        if mime_type == "image/png":
            picture.verify()
        else:
            picture.draft("L", (64, 64))
            picture.load()
    return facts


def convert_picture(source: Path, mime_type: str, target: Path, wanted: str) -> None:
    """Write the picture in another format, turned as its EXIF says; metadata stay behind.

    Nothing is `wanted`: PNG where the picture lets something show through, else JPEG.
    """
    from PIL import ImageOps  # noqa: PLC0415 - an extra

    with decoding("picture"), _opened(source, mime_type) as picture:
        turned = ImageOps.exif_transpose(picture)
        wanted = wanted or ("image/png" if turned.has_transparency_data else "image/jpeg")
        if wanted == "image/jpeg":
            turned = _on_white(turned)
        elif turned.mode not in {"RGB", "RGBA"}:
            turned = turned.convert("RGBA" if turned.has_transparency_data else "RGB")
    save(turned, target, wanted)


def save(picture: "Image.Image", target: Path, mime_type: str) -> None:
    """Write the pixels and nothing else."""
    picture.info.clear()
    with target.open("wb") as file:
        picture.save(file, FORMATS[mime_type], **_SAVE.get(FORMATS[mime_type], {}))


def _on_white(picture: "Image.Image") -> "Image.Image":
    from PIL import Image  # noqa: PLC0415 - an extra

    if not picture.has_transparency_data:
        return picture.convert("RGB")
    layer = picture.convert("RGBA")
    ground = Image.new("RGB", layer.size, "white")
    ground.paste(layer, mask=layer.getchannel("A"))
    return ground


def _opened(path: Path, mime_type: str) -> "Image.Image":
    try:
        from PIL import Image  # noqa: PLC0415 - an extra
    except ImportError:
        raise GatewayError("media_refused", "Pictures need the extra: pip install 'trunkline[media]'.") from None
    Image.MAX_IMAGE_PIXELS = None  # judged below, by our own limit, before a pixel is decoded
    picture = Image.open(path, formats=[FORMATS[mime_type]])
    try:
        check_pixels(picture.width, picture.height)
    except GatewayError:
        picture.close()
        raise
    return picture


def check_pixels(width: int, height: int) -> None:
    """Refuse what would fill the memory when decoded."""
    if width * height > MAX_PIXELS:
        raise GatewayError("media_refused", f"The file claims {width}x{height} pixels; at most {MAX_PIXELS} are taken.")


@contextmanager
def decoding(what: str) -> Iterator[None]:
    """Turn whatever a decoder raises at a damaged file into `media_damaged`."""
    try:
        yield
    except GatewayError:
        raise
    except Exception as error:  # decoders of hostile bytes raise anything
        raise GatewayError("media_damaged", f"The {what} cannot be decoded: {str(error)[:120]}") from error
