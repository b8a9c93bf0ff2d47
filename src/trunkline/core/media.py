"""Pictures and films: what is asked for, and what came of it."""

from typing import Any, Literal

from msgspec import Struct

MediaKind = Literal["image", "video", "cover"]


class Media(Struct, frozen=True):
    """One picture or film as an upstream gave it: a link, or the bytes themselves (exactly one of the two)."""

    kind: MediaKind
    url: str = ""
    """Absolute, or a path that begins with `/`: joined to the provider's `base_url` and fetched with its credential."""
    data: bytes = b""
    mime_type: str = ""
    """What the upstream claims; the store reads the type from the bytes."""
    cover_url: str = ""
    authorized: bool = False
    """The download needs the provider's credential; it is sent only if the link's host is the provider's own."""
    in_text: bool = False
    """The link already stands in the answer's text (so text models do not get it appended a second time)."""
    revised_prompt: str = ""


class MediaFile(Struct, frozen=True):
    """A file of bytes taken in, not yet looked at: lies in the store's workroom until it is kept or let go."""

    path: str
    sha256: str
    bytes: int
    mime_type: str
    """Told by the first bytes, as `media_type.sniff` does."""


class MediaFacts(Struct, frozen=True):
    """What a file really is, read from its own head."""

    mime_type: str
    width: int
    height: int
    duration_s: float | None = None
    codec: str | None = None


class StoredMedia(Struct, frozen=True):
    """A medium in the media store: true facts, read from the bytes."""

    id: str
    kind: MediaKind
    mime_type: str
    bytes: int
    sha256: str
    width: int
    height: int
    duration_s: float | None = None
    expires_at: int | None = None
    """Unix seconds; None: kept for ever."""


class MediaRecord(Struct, frozen=True, kw_only=True):
    """A medium as the index keeps it. `storage_key` names the blob, which other records may share."""

    id: str
    kind: MediaKind
    key_id: str = ""
    job_id: str = ""
    model: str = ""
    sha256: str
    storage_key: str
    mime_type: str
    bytes: int
    width: int = 0
    height: int = 0
    duration_s: float | None = None
    cover_id: str = ""
    created_ms: int = 0
    expires_ms: int | None = None


class FileRecord(Struct, frozen=True, kw_only=True):
    """An upload of a client (`POST /v1/files`), as the index keeps it."""

    id: str
    key_id: str = ""
    purpose: str
    filename: str = ""
    sha256: str
    storage_key: str
    mime_type: str
    bytes: int
    width: int = 0
    height: int = 0
    created_ms: int = 0
    expires_ms: int | None = None


class MediaInput(Struct, frozen=True):
    """A picture that the client sent along: a link, a data URL's bytes, or an upload."""

    url: str = ""
    data: bytes = b""
    mime_type: str = ""
    role: Literal["image", "mask", "first_frame", "last_frame"] = "image"
    sha256: str = ""
    """While a job waits: the bytes are in the media store under this hash; dialects get them as `data`."""
    file_id: str = ""
    """An upload of the client (`POST /v1/files`), until the shell has looked it up."""
    former: bool = False
    """Shown by the model before, not sent now: when it is gone, the job goes without it."""


class MediaRequest(Struct, frozen=True):
    """What a client wants drawn or filmed, after all spellings were read (wire.md section 11). None: not asked."""

    kind: Literal["image", "video"]
    prompt: str
    model: str
    n: int = 1
    ratio: str | None = None
    """`W:H`"""
    tier: str | None = None
    """`512`, `1K`, `2K`, `4K`, or a film's `480p`, `720p`, `1080p`, `4k`"""
    width: int | None = None
    height: int | None = None
    output_format: str | None = None
    """`png`, `jpeg` or `webp`"""
    convert_to: str | None = None
    """The same, where the provider cannot give it: then the gateway makes it of what comes."""
    quality: str | None = None
    seconds: float | None = None
    usual_seconds: float | None = None
    """A film's length where none is asked for, as far as it is known; not told to the provider."""
    usual_size: str = ""
    """Its `WxH` where nothing of its shape is asked for."""
    fps: int | None = None
    seed: int | None = None
    negative_prompt: str | None = None
    audio: bool | None = None
    background: str | None = None
    inputs: tuple[MediaInput, ...] = ()
    partial_images: int = 0
    user: str | None = None
    spelled: dict[str, str] = {}
    """How the client wrote what not every provider takes, by meaning."""
    extra: dict[str, Any] = {}
    """What else the client said at the top level, for upstreams that take the client's own words."""
