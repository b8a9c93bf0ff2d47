"""What is known of a provider: the shape of `providers/*.toml` and of `[providers.X]` in the configuration."""

from typing import Any, Literal

from msgspec import Struct, field

ModelKind = Literal["text", "image", "video"]


class ChatSide(Struct, frozen=True, forbid_unknown_fields=True):
    """How a provider speaks chat."""

    dialect: str = "openai_chat"
    path: str = ""
    """In place of the dialect's own path; `{model}` is replaced."""
    rename: dict[str, str] = field(default_factory=dict)
    """Request members under the names this provider wants: `{max_completion_tokens = "max_tokens"}`."""
    drop: tuple[str, ...] = ()
    """Request members this provider refuses."""
    quirks: tuple[str, ...] = ()


class MediaSide(Struct, frozen=True, forbid_unknown_fields=True):
    """How a provider makes pictures or films."""

    dialect: str
    path: str = ""
    quirks: tuple[str, ...] = ()


class ModelFacts(Struct, frozen=True, forbid_unknown_fields=True):
    """A model of a provider's catalogue. Empty lists: not known, anything passes."""

    kind: ModelKind = "text"
    id: str = ""
    """The upstream's id where the catalogue's name is another."""
    tier: str = ""
    """The tier that this name stands for, as in `NanoBananaPro-2K`."""
    dialect: str = ""
    """In place of the provider's dialect for this kind."""
    ratios: tuple[str, ...] = ()
    tiers: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    """`WxH` that the model takes; `*x*` stands for any."""
    formats: tuple[str, ...] = ()
    qualities: tuple[str, ...] = ()
    seconds: tuple[float, ...] = ()
    fps: tuple[int, ...] = ()
    max_n: int = 1
    max_inputs: int = 0
    price: dict[str, Any] = field(default_factory=dict)
    """USD: `input_per_mtok`, `output_per_mtok`, `cached_per_mtok`, `per_image`, `per_second`.

    The last two are a number, or a table by tier or quality.
    """


class Provider(Struct, frozen=True, forbid_unknown_fields=True):
    """A provider. Secrets (`api_key`) are references until `config.secrets` resolves them, and never printed."""

    base_url: str = ""
    docs: str = ""
    api_key: str | tuple[str, ...] = ""
    """`env:NAME`, `file:PATH` or a literal; several are used in turn (in a shipped file: the first that is set)."""
    auth: Literal["bearer", "api-key", "x-api-key", "x-goog-api-key", "key", "sigv4", "bigmodel_jwt", "none"] = "bearer"
    headers: dict[str, str] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    enabled: Literal["key", "always", "declared"] = "key"
    """Shipped providers: on when a key is found, always, or only when the configuration names them."""
    chat: ChatSide | None = None
    image: MediaSide | None = None
    video: MediaSide | None = None
    models: dict[str, ModelFacts] = field(default_factory=dict)
