"""Google's own options stand under `extra_body.google` in the body itself, where SDKs flatten them (wire.md 3.3)."""

from typing import Any

import msgspec
from msgspec import Raw

from trunkline.core.quirk import Quirk
from trunkline.wire.frame import UNREADABLE
from trunkline.wire.read import as_dict

_FLAT = ("thinking_config", "image_config", "cached_content", "safety_settings")


def change(fields: dict[str, Raw]) -> None:
    """Move `google`, and its members where they stand alone, to where the provider reads them."""
    moved = {name: value for name in _FLAT if (value := fields.pop(name, None)) is not None}
    beside = fields.pop("google", None)
    if beside is None and not moved:
        return
    outer = _object(fields.get("extra_body"))
    inner = {**as_dict(outer.get("google")), **_object(beside), **moved}
    fields["extra_body"] = Raw(msgspec.json.encode({**outer, "google": inner}))


def _object(raw: Raw | None) -> dict[str, Any]:
    try:
        return as_dict(msgspec.json.decode(raw)) if raw is not None else {}
    except UNREADABLE:
        return {}


QUIRK = Quirk("google_in_extra_body", request=change)
