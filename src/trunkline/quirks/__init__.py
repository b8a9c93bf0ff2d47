"""Departures from a dialect: one file each, named in a provider's TOML."""

from trunkline.core.quirk import Quirk
from trunkline.quirks import think_tags

QUIRKS: dict[str, Quirk] = {quirk.name: quirk for quirk in (think_tags.QUIRK,)}
"""All quirks by name."""
