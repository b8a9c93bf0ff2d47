"""Pictures are asked for by `modalities`, their shape by `image_config` (wire.md section 7)."""

from typing import Any

import msgspec
from msgspec import Raw

from trunkline.core.quirk import Quirk


def tell(fields: dict[str, Raw], words: dict[str, Any]) -> None:
    """Put ratio and tier into `image_config`, the rest beside it."""
    config = {name: words[name] for name in ("aspect_ratio", "image_size") if name in words}
    rest = {name: value for name, value in words.items() if name not in config}
    members: dict[str, Any] = {"modalities": ["image", "text"], **({"image_config": config} if config else {}), **rest}
    for name, value in members.items():
        fields.setdefault(name, Raw(msgspec.json.encode(value)))


QUIRK = Quirk("image_config", pictures=tell)
