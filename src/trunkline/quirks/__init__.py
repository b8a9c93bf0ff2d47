"""Departures from a dialect: one file each, named in a provider's TOML."""

from trunkline.core.quirk import Quirk
from trunkline.quirks import reasoning_outside_total, think_tags

QUIRKS: dict[str, Quirk] = {quirk.name: quirk for quirk in (think_tags.QUIRK, reasoning_outside_total.QUIRK)}
"""All quirks by name."""
