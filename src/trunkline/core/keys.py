"""Virtual keys and their groups: what a client may do, never the secret itself."""

from functools import cached_property
from typing import Literal

from msgspec import UNSET, Struct, UnsetType, field

from trunkline.core.money import Budget
from trunkline.core.route import MediaStyle

KeyState = Literal["active", "blocked", "revoked"]


class Rates(Struct, frozen=True, forbid_unknown_fields=True):
    """How much may be asked for in any 60 seconds, and how many streams may be open at once. None: no limit."""

    requests: int | None = None
    tokens: int | None = None
    images: int | None = None
    streams: int | None = None

    def __bool__(self) -> bool:
        """Tell whether there is any limit."""
        return not (self.requests is None and self.tokens is None and self.images is None and self.streams is None)


class KeyGroup(Struct, frozen=True, kw_only=True):
    """Keys that share a budget, beside their own."""

    id: str
    name: str
    state: KeyState = "active"
    budget: Budget = Budget()
    metadata: dict[str, str] = field(default_factory=dict)
    created_ms: int = 0
    updated_ms: int = 0


class Key(Struct, frozen=True, kw_only=True, dict=True):
    """A virtual key. `prefix` is what may be shown of its secret: `sk-tl-` and 8 characters."""

    id: str
    name: str
    prefix: str = ""
    state: KeyState = "active"
    group: KeyGroup | None = None
    models: tuple[str, ...] = ()
    """Globs over the names that clients ask for; empty: all."""
    budget: Budget = Budget()
    rates: Rates = Rates()
    media_style: MediaStyle | Literal[""] = ""
    record: bool = False
    """Prompts and answers of this key may be recorded."""
    cache: bool = False
    """Answers may come from the response cache."""
    metadata: dict[str, str] = field(default_factory=dict)
    created_ms: int = 0
    updated_ms: int = 0
    expires_ms: int | None = None

    @cached_property
    def group_id(self) -> str:
        """The group's id, or the empty string."""
        return self.group.id if self.group else ""

    @cached_property
    def budgeted(self) -> bool:
        """Tell whether a budget of the key or of its group limits what it may spend."""
        return bool(self.budget) or (self.group is not None and bool(self.group.budget))

    @cached_property
    def limited(self) -> bool:
        """Tell whether there is any limit on how much may be asked for at a time."""
        return bool(self.rates)


ANONYMOUS = Key(id="", name="anonymous")
"""Who calls when keys are not required: everything is allowed, nothing is limited, the ledger is kept."""


class KeyChanges(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What to change of a key; what is unset stays, so no cached key is ever written back."""

    name: str | UnsetType = UNSET
    state: KeyState | UnsetType = UNSET
    group_id: str | UnsetType | None = UNSET
    models: tuple[str, ...] | UnsetType = UNSET
    budget: Budget | UnsetType = UNSET
    rates: Rates | UnsetType = UNSET
    media_style: MediaStyle | Literal[""] | UnsetType = UNSET
    record: bool | UnsetType = UNSET
    cache: bool | UnsetType = UNSET
    metadata: dict[str, str] | UnsetType = UNSET
    expires_ms: int | UnsetType | None = UNSET


class GroupChanges(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What to change of a group; what is unset stays."""

    name: str | UnsetType = UNSET
    state: KeyState | UnsetType = UNSET
    budget: Budget | UnsetType = UNSET
    metadata: dict[str, str] | UnsetType = UNSET
