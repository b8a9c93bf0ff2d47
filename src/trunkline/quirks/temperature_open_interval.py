"""A temperature or `top_p` of exactly 0 or 1 is refused: the nearest value within is sent (wire.md section 4.1)."""

import msgspec
from msgspec import Raw

from trunkline.core.quirk import Quirk
from trunkline.wire.frame import UNREADABLE

_LEAST, _MOST = 0.01, 0.99


def change(fields: dict[str, Raw]) -> None:
    """Move both into the interval; a temperature of 0 means: no sampling."""
    temperature = _number(fields.get("temperature"))
    if temperature is not None:
        if temperature <= 0:
            fields["do_sample"] = Raw(b"false")
        _clamp(fields, "temperature", temperature)
    top_p = _number(fields.get("top_p"))
    if top_p is not None:
        _clamp(fields, "top_p", top_p)


def _clamp(fields: dict[str, Raw], name: str, value: float) -> None:
    if not _LEAST <= value <= _MOST:
        fields[name] = Raw(msgspec.json.encode(min(max(value, _LEAST), _MOST)))


def _number(raw: Raw | None) -> float | None:
    try:
        return msgspec.json.decode(raw, type=float) if raw is not None else None
    except UNREADABLE:
        return None


QUIRK = Quirk("temperature_open_interval", request=change)
