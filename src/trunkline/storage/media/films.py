"""Films by PyAV: size, duration, codec, a cover. Every file is hostile until looked at."""

from pathlib import Path
from typing import TYPE_CHECKING

from trunkline.core.errors import GatewayError
from trunkline.core.media import MediaFacts
from trunkline.storage.media.pictures import check_pixels, decoding, save

if TYPE_CHECKING:
    from av import Packet, VideoFrame, VideoStream
    from av.container import InputContainer
    from PIL import Image

CONTAINERS = {"video/mp4": "mov", "video/quicktime": "mov", "video/webm": "matroska"}
DARK = 24
"""Mean brightness (0 … 255) under which a frame tells nothing yet."""
LOOKED_AT = 48


def film_facts(path: Path, mime_type: str) -> MediaFacts:
    """Read a film's head, decode its first frame (what has none is no film), and see that it is whole."""
    with decoding("film"), _opened(path, mime_type) as container:
        video = container.streams.video[0]
        check_pixels(video.width, video.height)
        if next(container.decode(video), None) is None:
            raise GatewayError("media_damaged", "The film has no frame.")
        told_s = float(video.duration * video.time_base) if video.duration and video.time_base else 0.0
        told_s = told_s or (container.duration or 0) / 1_000_000
        found_s = max((_end_s(packet) for packet in container.demux(video)), default=0.0)
        if found_s < told_s * 0.95 - 0.5:
            raise GatewayError("media_damaged", f"The film is cut short: {found_s:.1f} s of {told_s:.1f} s are there.")
        return MediaFacts(
            mime_type=mime_type,
            width=video.width,
            height=video.height,
            duration_s=round(told_s or found_s, 3),
            codec=video.codec_context.name,
        )


def film_cover(path: Path, mime_type: str, target: Path) -> None:
    """Write the first frame that is not dark, of the first two seconds or so, as JPEG."""
    with decoding("film"), _opened(path, mime_type) as container:
        video = container.streams.video[0]
        check_pixels(video.width, video.height)
        brightest, best = -1.0, None
        for _, frame in zip(range(LOOKED_AT), container.decode(video), strict=False):
            brightness = _brightness(frame)
            if brightness > brightest:
                brightest, best = brightness, frame
            if brightness > DARK:
                break
        if best is None:
            raise GatewayError("media_damaged", "The film has no frame.")
        picture = _image(best)
    save(picture, target, "image/jpeg")


def _end_s(packet: "Packet[VideoStream]") -> float:
    if packet.pts is None or packet.time_base is None:
        return 0.0
    return float((packet.pts + (packet.duration or 0)) * packet.time_base)


def _brightness(frame: "VideoFrame") -> float:
    return sum(_image(frame.reformat(width=8, height=8, format="gray")).tobytes()) / 64


def _image(frame: "VideoFrame") -> "Image.Image":
    image: Image.Image = frame.to_image()  # type: ignore[no-untyped-call]
    return image


def _opened(path: Path, mime_type: str) -> "InputContainer":
    try:
        import av  # noqa: PLC0415 - an extra
    except ImportError:
        raise GatewayError("media_refused", "Films need the extra: pip install 'trunkline[media]'.") from None
    container = av.open(
        str(path), format=CONTAINERS[mime_type]
    )  # the format is given: no playlists, no other protocols
    if not container.streams.video:
        container.close()
        raise GatewayError("media_refused", "The file holds no film.")
    return container
