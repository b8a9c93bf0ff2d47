"""The type of a picture or film, told by its first bytes; what an upstream claims does not count."""

SNIFF_BYTES = 64
"""How many of the first bytes `sniff` wants to see."""

EXTENSIONS = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/webp": "webp",
    "image/gif": "gif",
    "video/mp4": "mp4",
    "video/quicktime": "mov",
    "video/webm": "webm",
}
"""The types that are kept, with the usual ending of their files."""
FOREIGN = frozenset({"image/avif", "image/bmp", "image/tiff"})
"""Pictures that are taken, and turned into one of the types that are kept: few providers read them."""

_BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
)
_BITMAP_HEADERS = frozenset({12, 40, 52, 56, 64, 108, 124})
"""How long the second header of a bitmap may be: `BM` alone could begin any text."""
_STILLS = frozenset((b"heic", b"heix", b"heim", b"heis", b"mif1", b"msf1", b"crx "))


def sniff(head: bytes) -> str | None:
    """Give the MIME type of a file that begins so, of `EXTENSIONS` or `FOREIGN`; None for anything else."""
    for begins, mime_type in _BEGINNINGS:
        if head.startswith(begins):
            return mime_type
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    if head[:2] == b"BM" and int.from_bytes(head[14:18], "little") in _BITMAP_HEADERS:
        return "image/bmp"
    if head[4:8] in {b"moov", b"mdat", b"wide"}:
        return "video/quicktime"
    if head.startswith(b"\x1a\x45\xdf\xa3") and b"webm" in head[:SNIFF_BYTES]:
        return "video/webm"
    return _base_media(head[8:12]) if head[4:8] == b"ftyp" else None


def _base_media(brand: bytes) -> str | None:
    """Tell mp4 and mov by the major brand (ISO/IEC 14496-12); still pictures and audio are neither."""
    if brand in {b"avif", b"avis"}:
        return "image/avif"
    if brand in _STILLS or brand.startswith((b"M4A", b"M4B", b"M4P")):
        return None
    return "video/quicktime" if brand == b"qt  " else "video/mp4"
