"""A chat request and the target it goes to: the forms between clients and dialects."""

from msgspec import Raw, Struct, field

from trunkline.core.provider import Side


class ChatRequest(Struct):
    """A client's chat request. `fields` holds every top-level member as it was sent, for what no station reads.

    When a stream's answer has begun nothing of them is needed any more, and they may be gone.
    """

    model: str
    fields: dict[str, Raw]
    stream: bool = False
    include_usage: bool = False
    include_cost: bool = False
    n: int = 1
    messages: int = 0
    """How many there are."""
    legacy_functions: bool = False
    """The client sent `functions`, so it reads `function_call`."""
    said: Raw | None = None
    """`messages` without the data of their pictures and PDFs, where that is less than all of them."""
    film_s: float | None = None
    """How long the films are to be that are asked for."""
    pdf_pages: int = 0
    """How many pages of PDFs `said` is without."""

    @property
    def words(self) -> Raw | None:
        """Give `messages` as far as they are counted."""
        return self.fields.get("messages") if self.said is None else self.said


class Target(Struct, frozen=True):
    """A provider's model, with what a dialect needs to build a request; credentials are not here."""

    provider: str
    model: str
    base_url: str
    dialect: str
    side: Side = "chat"
    """Whether `dialect` is one of chat, or one that makes pictures or films (then the call is a job)."""
    path: str = ""
    """In place of the dialect's own path, when the provider's differs; `{model}` is replaced."""
    quirks: tuple[str, ...] = ()
    rename: dict[str, str] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)
    """What a dialect asks of a provider beyond the usual: `region`, `api_version`, …"""


class UpstreamRequest(Struct, frozen=True):
    """What to send to a target: built by a dialect, without credentials. `path` is joined to `base_url`."""

    path: str
    body: bytes = b""
    method: str = "POST"
    headers: tuple[tuple[str, str], ...] = (("content-type", "application/json"),)
