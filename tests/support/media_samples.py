"""Real pictures and films, made by real encoders; and hostile ones."""

import io
import random
import struct
import tempfile
import zlib
from collections.abc import AsyncIterator
from fractions import Fraction
from functools import cache
from pathlib import Path

import av
from PIL import Image

RED = (200, 50, 50)
BLACK = (0, 0, 0)


@cache
def picture(form: str = "PNG", size: tuple[int, int] = (64, 48), mode: str = "RGB") -> bytes:
    """Noise, so that it does not compress to nothing."""
    out = io.BytesIO()
    noise = random.Random(7).randbytes(size[0] * size[1] * len(mode))
    Image.frombytes(mode, size, noise).save(out, form)
    return out.getvalue()


@cache
def heavy() -> bytes:
    """A picture of 10 MB."""
    out = io.BytesIO()
    side = 1840
    noise = random.Random(9).randbytes(side * side * 3)
    Image.frombytes("RGB", (side, side), noise).save(out, "PNG", compress_level=1)
    return out.getvalue()


@cache
def film(form: str = "mp4", *, frames: int = 24, dark: int = 0, noisy: bool = False) -> bytes:
    """12 frames a second, 64x48, the first `dark` of them black, the others red; the index stands first."""
    size = (64, 48)
    grain = random.Random(3)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "film"
        with av.open(str(path), "w", format=form, options={} if form == "webm" else {"movflags": "faststart"}) as out:
            stream = out.add_stream("libvpx-vp9" if form == "webm" else "libx264", rate=12)
            stream.width, stream.height = size
            stream.pix_fmt = "yuv420p"
            for n in range(frames):
                still = Image.new("RGB", size, BLACK if n < dark else RED)
                if noisy:
                    still = Image.frombytes("RGB", size, grain.randbytes(3 * 64 * 48))
                frame = av.VideoFrame.from_image(still)  # type: ignore[no-untyped-call]
                frame.pts, frame.time_base = n, Fraction(1, 12)
                out.mux(stream.encode(frame))
            out.mux(stream.encode())
        return path.read_bytes()


def bomb(width: int = 50_000, height: int = 50_000) -> bytes:
    """A small PNG that claims to be enormous."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = zlib.compress(bytes(1 << 20), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


async def pieces(data: bytes, size: int = 1000) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]
