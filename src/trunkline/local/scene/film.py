"""The scene as a film: its layers moved from frame to frame, encoded as H.264 in mp4, with a cover."""

from collections.abc import Callable
from pathlib import Path

import av
from av.video.stream import VideoStream
from msgspec import Struct
from PIL import Image

from trunkline.local.scene.compose import sprites
from trunkline.local.scene.prompt import parse

_QUICK = {"libx264": {"preset": "veryfast", "crf": "21"}}
"""Options of the encoders that we know; others run with their own defaults."""


class FilmOrder(Struct, frozen=True):
    """One film; both sides of `size` are even. `given` is a picture of that size to play before (PNG or JPEG)."""

    prompt: str
    seed: int
    size: tuple[int, int]
    seconds: float
    fps: int
    encoder: str
    given: bytes = b""


def film(order: FilmOrder, target: Path, progress: Callable[[int], None]) -> Image.Image:
    """Write the film to `target`, report the percent done, and give its middle frame as the cover.

    Raises av.FFmpegError when the encoder does not work here.
    """
    parts = []
    for sprite in sprites(parse(order.prompt), order.size, order.seed, order.seconds, order.given):
        parts.append(sprite)
        progress(min(29, 2 * len(parts)))
    count = max(1, round(order.seconds * order.fps))
    cover = Image.new("RGB", order.size)
    with av.open(str(target), "w", format="mp4", options={"movflags": "faststart"}) as container:
        stream = container.add_stream(order.encoder, rate=order.fps, options=_QUICK.get(order.encoder, {}))
        assert isinstance(stream, VideoStream)  # noqa: S101 - the encoder's kind was checked at start
        (stream.width, stream.height), stream.pix_fmt = order.size, "yuv420p"
        for number in range(count):
            frame = Image.new("RGBA", order.size, "#FFFFFF")
            for part in parts:
                part.lay(frame, (number - count // 2) / order.fps)
            rgb = frame.convert("RGB")
            cover = rgb if number == count // 2 else cover
            container.mux(stream.encode(av.VideoFrame.from_image(rgb)))  # type: ignore[no-untyped-call]
            progress(30 + 69 * (number + 1) // count)
        container.mux(stream.encode())
    return cover
