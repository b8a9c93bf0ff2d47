"""What a job is bound to from its submit on, and what its parts have come to: the JSON in `Job.binding`."""

from typing import Literal

import msgspec
from msgspec import Raw, Struct

from trunkline.core.chat import Target
from trunkline.core.errors import UpstreamError
from trunkline.core.events import Usage
from trunkline.core.media import Media

PartState = Literal["new", "working", "ready", "refused", "unknown"]


class Item(Struct):
    """A medium that was found: where it is, and its record once it is kept. Inline bytes are kept before this is."""

    media: Media
    media_id: str = ""


class Part(Struct):
    """One submit of a job. A model that gives fewer media a time than were asked for is asked several times."""

    n: int = 1
    state: PartState = "new"
    task: str = ""
    percent: float | None = None
    items: list[Item] = []
    usage: Usage | None = None
    text: str = ""
    error: UpstreamError | None = None


class Binding(Struct):
    """The target, and one part for each submit."""

    target: Target
    parts: list[Part]

    def usage(self) -> Usage | None:
        """Add up what the provider counted."""
        counted = [part.usage for part in self.parts if part.usage is not None]
        if not counted:
            return None
        names = [name for name in Usage.__struct_fields__ if name not in {"cost_microusd", "estimated"}]
        costs = [usage.cost_microusd for usage in counted if usage.cost_microusd is not None]
        sums = {name: sum(getattr(usage, name) for usage in counted) for name in names}
        estimated = any(usage.estimated for usage in counted)
        return Usage(**sums, cost_microusd=sum(costs) if costs else None, estimated=estimated)


def bind(target: Target, n: int, per_submit: int) -> Raw:
    """Cut `n` media into submits of at most `per_submit`."""
    whole, rest = divmod(n, max(per_submit, 1))
    parts = [Part(n=per_submit) for _ in range(whole)] + ([Part(n=rest)] if rest else [])
    return encode(Binding(target, parts))


def encode(binding: Binding) -> Raw:
    """Write the binding as it is stored."""
    return Raw(msgspec.json.encode(binding))


def decode(raw: Raw) -> Binding:
    """Read the binding as it was stored."""
    return msgspec.json.decode(raw, type=Binding)
