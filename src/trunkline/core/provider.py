"""What is known of a provider: the shape of `providers/*.toml` and of `[providers.X]` in the configuration."""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from trunkline.core.secret import Secret

ModelKind = Literal["text", "image", "video"]
Side = Literal["chat", "image", "video"]
AuthKind = Literal["bearer", "api-key", "x-api-key", "x-goog-api-key", "key", "sigv4", "bigmodel_jwt", "none"]
Usd = Annotated[float, Meta(ge=0)]
Seconds = Annotated[float, Meta(gt=0)]
Count = Annotated[int, Meta(ge=0)]


class ChatSide(Struct, frozen=True, forbid_unknown_fields=True):
    """How a provider speaks chat."""

    dialect: Annotated[str, Meta(description="The wire language.")] = "openai_chat"
    base_url: Annotated[str, Meta(description="In place of the provider's `base_url`.")] = ""
    path: Annotated[str, Meta(description="In place of the dialect's own path; `{model}` is replaced.")] = ""
    auth: Annotated[AuthKind | None, Meta(description="In place of the provider's `auth`.")] = None
    rename: Annotated[
        dict[str, str],
        Meta(description='Request members under other names: `{ max_completion_tokens = "max_tokens" }`.'),
    ] = field(default_factory=dict)
    drop: Annotated[
        tuple[str, ...],
        Meta(description="Request members that the provider refuses; the gateway's own `stream_options` too."),
    ] = ()
    quirks: Annotated[tuple[str, ...], Meta(description="Departures from the dialect, by name.")] = ()


class MediaSide(Struct, frozen=True, forbid_unknown_fields=True):
    """How a provider makes pictures or films."""

    dialect: Annotated[str, Meta(description="The wire language.")]
    base_url: Annotated[str, Meta(description="In place of the provider's `base_url`.")] = ""
    path: Annotated[str, Meta(description="In place of the dialect's own path; `{model}` is replaced.")] = ""
    auth: Annotated[AuthKind | None, Meta(description="In place of the provider's `auth`.")] = None
    rename: Annotated[dict[str, str], Meta(description="Request members under other names.")] = field(
        default_factory=dict
    )
    drop: Annotated[tuple[str, ...], Meta(description="Request members that the provider refuses.")] = ()
    quirks: Annotated[tuple[str, ...], Meta(description="Departures from the dialect, by name.")] = ()


class Price(Struct, frozen=True, forbid_unknown_fields=True):
    """USD. A medium costs one number, or a number by tier (`2K`, `720p`), quality, size or `quality size`."""

    input_per_mtok: Annotated[Usd | None, Meta(description="A million input tokens.")] = None
    output_per_mtok: Annotated[Usd | None, Meta(description="A million output tokens.")] = None
    cached_per_mtok: Annotated[Usd | None, Meta(description="A million input tokens read from the cache.")] = None
    cache_write_per_mtok: Annotated[Usd | None, Meta(description="A million input tokens put into the cache.")] = None
    reasoning_per_mtok: Annotated[Usd | None, Meta(description="A million output tokens of reasoning.")] = None
    audio_input_per_mtok: Annotated[Usd | None, Meta(description="A million input tokens that are sound.")] = None
    audio_output_per_mtok: Annotated[Usd | None, Meta(description="A million output tokens that are sound.")] = None
    image_input_per_mtok: Annotated[Usd | None, Meta(description="A million input tokens that are pictures.")] = None
    image_output_per_mtok: Annotated[Usd | None, Meta(description="A million output tokens that are pictures.")] = None
    per_image: Annotated[
        Usd | dict[str, Usd] | None, Meta(description="A picture; or by tier, quality, size or `quality size`.")
    ] = None
    per_second: Annotated[Usd | dict[str, Usd] | None, Meta(description="A second of film; or by tier or size.")] = None
    per_video: Annotated[Usd | dict[str, Usd] | None, Meta(description="A film; or by tier, quality or size.")] = None


class ModelFacts(Struct, frozen=True, forbid_unknown_fields=True):
    """A model of a provider's catalogue. An empty list, or no value: not known, anything passes."""

    kind: Annotated[ModelKind, Meta(description="What the model makes.")] = "text"
    id: Annotated[str, Meta(description="The upstream's id where the catalogue's name is another.")] = ""
    tier: Annotated[str, Meta(description="The tier this name stands for, as in `NanoBananaPro-2K`.")] = ""
    dialect: Annotated[str, Meta(description="In place of the provider's dialect for this kind.")] = ""
    ratios: Annotated[tuple[str, ...], Meta(description="Aspect ratios `W:H`.")] = ()
    tiers: Annotated[tuple[str, ...], Meta(description="Tiers: `512`, `1K`, `2K`, `4K`; `720p`, `1080p`.")] = ()
    sizes: Annotated[tuple[str, ...], Meta(description="Pixels `WxH`; `*x*` stands for any.")] = ()
    size_step: Annotated[int, Meta(ge=1, description="Width and height are multiples of this.")] = 1
    size_max: Annotated[str, Meta(description="Largest `WxH`, or the same upright.")] = ""
    formats: Annotated[tuple[str, ...], Meta(description="File types that the provider itself can give.")] = ()
    qualities: Annotated[tuple[str, ...], Meta(description="Values of `quality`.")] = ()
    seconds: Annotated[tuple[float, ...], Meta(description="Lengths of a film, in seconds.")] = ()
    usual_seconds: Annotated[Seconds | None, Meta(description="Length of a film for which none is asked.")] = None
    usual_size: Annotated[str, Meta(description="Pixels `WxH` of a film for which nothing of its shape is asked.")] = ""
    fps: Annotated[tuple[int, ...], Meta(description="Frames a second.")] = ()
    max_n: Annotated[int, Meta(ge=1, description="Most pictures or films in one request.")] = 1
    max_inputs: Annotated[Count | None, Meta(description="Most pictures that may be sent along.")] = None
    price: Annotated[Price | None, Meta(description="What it costs; text models' prices are known otherwise.")] = None


class Provider(Struct, frozen=True, forbid_unknown_fields=True):
    """A provider. In `base_url` and `options`, `${NAME}` and `${NAME:-otherwise}` stand for environment variables."""

    base_url: Annotated[str, Meta(description="Address up to the dialect's path, as in `https://host/v1`.")] = ""
    docs: Annotated[str, Meta(description="Where the provider documents its API.")] = ""
    api_key: Annotated[
        tuple[Secret, ...],
        Meta(description="`env:NAME`, `file:PATH` or the key itself; of a list each in turn."),
    ] = ()
    auth: Annotated[AuthKind, Meta(description="How the key is sent.")] = "bearer"
    headers: Annotated[
        dict[str, Secret], Meta(description="Further request headers; values as in `api_key`, never shown.")
    ] = field(default_factory=dict)
    options: Annotated[
        dict[str, str], Meta(description="What a dialect asks for beyond the usual, as `api_version` or `region`.")
    ] = field(default_factory=dict)
    enabled: Annotated[
        bool | None,
        Meta(description="Default: on when its key is found, one of `enabled_by` is set, or it needs neither."),
    ] = None
    enabled_by: Annotated[
        tuple[str, ...],
        Meta(description="Environment variables that switch it on; with any named here a key is optional."),
    ] = ()
    model: Annotated[str, Meta(description="Only for `local`: a GGUF file in place of the shipped weights.")] = ""
    prices_from: Annotated[str, Meta(description="Source and date of the prices below.")] = ""
    price: Annotated[Price | None, Meta(description="What its models cost that do not say so themselves.")] = None
    chat: Annotated[ChatSide | None, Meta(description="How it speaks chat.")] = None
    image: Annotated[MediaSide | None, Meta(description="How it makes pictures, if not in a chat.")] = None
    video: Annotated[MediaSide | None, Meta(description="How it makes films, if not in a chat.")] = None
    models: Annotated[dict[str, ModelFacts], Meta(description="The catalogue.")] = field(default_factory=dict)
