"""Model aliases as they are configured, and the routes that come of them."""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from trunkline.core.chat import Target
from trunkline.core.provider import AuthKind, ModelFacts, ModelKind, Price, Provider
from trunkline.core.secret import Secret

Strategy = Literal["in_order", "weighted", "fastest"]
MediaStyle = Literal["markdown", "bare", "html", "images", "data_url", "footnotes"]
Seconds = Annotated[float, Meta(gt=0)]


class Timeouts(Struct, frozen=True, forbid_unknown_fields=True):
    """Limits by phase, in seconds; there is no limit on the whole."""

    connect_s: Annotated[Seconds, Meta(description="To reach the provider.")] = 5
    first_event_s: Annotated[Seconds, Meta(description="From the request to the first event of the answer.")] = 120
    idle_s: Annotated[Seconds, Meta(description="Between two reads of an answer that has begun.")] = 60
    max_wait_s: Annotated[
        Seconds, Meta(description="As `first_event_s`, while the provider's comments show that it lives.")
    ] = 1800
    client_stall_s: Annotated[Seconds, Meta(description="A client that reads nothing is let go.")] = 120


class AliasTarget(Struct, frozen=True, forbid_unknown_fields=True):
    """A target with a weight."""

    target: Annotated[str, Meta(description="`provider:model`; `provider:*` passes the asked name on.")]
    weight: Annotated[float, Meta(gt=0, description='Its share under `strategy = "weighted"`.')] = 1


class Alias(Struct, frozen=True, forbid_unknown_fields=True):
    """A name that clients ask for, or a pattern of names (`*`), and what is done for it."""

    targets: Annotated[
        tuple[str | AliasTarget, ...],
        Meta(description="`provider:model`, best first; none: what the name means without this table."),
    ] = ()
    strategy: Annotated[Strategy, Meta(description="How the targets are put in order for a call.")] = "in_order"
    timeouts: Annotated[Timeouts, Meta(description="Limits by phase.")] = Timeouts()
    kind: Annotated[ModelKind | None, Meta(description="What it makes; default: the catalogue's word, else text.")] = (
        None
    )
    media_style: Annotated[MediaStyle | None, Meta(description="How media stand in the answer.")] = None
    progress: Annotated[
        Literal["reasoning", "content", "off"], Meta(description="Where the progress of media is told.")
    ] = "reasoning"
    on_disconnect: Annotated[
        Literal["cancel", "continue"] | None,
        Meta(description="When the client leaves; default: continue for jobs, cancel for text."),
    ] = None
    hedge_s: Annotated[
        Seconds | None, Meta(description="No first event after this long: the next target is asked as well.")
    ] = None
    retries: Annotated[int, Meta(ge=0, le=10, description="Further tries of the same target, before the next.")] = 0
    retry_within_s: Annotated[Seconds, Meta(description="No retry begins later than this after the request.")] = 10
    fallback_on: Annotated[
        tuple[Literal["context_length_exceeded", "content_filter"], ...],
        Meta(description="Refusals of the request that another target may still answer."),
    ] = ()
    price: Annotated[Price | None, Meta(description="In place of the known price.")] = None
    task_model: Annotated[
        str, Meta(description="Who answers the side requests of front ends to an image or video model.")
    ] = ""


class RouteTarget(Struct, frozen=True):
    """One target of a route, with what is needed to reach it and to account for it."""

    target: Target
    provider: Provider
    auth: AuthKind
    facts: ModelFacts = ModelFacts()
    """What the catalogue knows of the model; the default when it knows nothing."""
    price: Price | None = None
    weight: float = 1
    suffix: str = ""
    """What of the asked name is no name of a model but says what it shall make, as `-16x9-8s`."""

    @property
    def credentials(self) -> tuple[Secret, ...]:
        """The provider's keys; empty: none is sent."""
        return self.provider.api_key


class Route(Struct, frozen=True):
    """What a model name means: targets, best first, and how they are to be used."""

    name: str
    """As it was asked for."""
    kind: ModelKind
    targets: tuple[RouteTarget, ...]
    settings: Alias = Alias()


class ListedModel(Struct, frozen=True):
    """A model that clients can see in `/v1/models`."""

    id: str
    kind: ModelKind
    owner: str
    """The first target's provider."""
    facts: ModelFacts = field(default_factory=ModelFacts)


def split_target(text: str) -> tuple[str, str] | None:
    """Split `provider:model` at its first colon; None when it is no target (a `*` stands alone or not at all)."""
    provider, colon, model = text.partition(":")
    if not (provider and colon and model) or ("*" in model and model != "*"):
        return None
    return provider, model
