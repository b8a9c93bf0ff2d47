"""Departures from a dialect: one file each, named in a provider's TOML."""

from trunkline.core.quirk import Quirk
from trunkline.quirks import (
    google_in_extra_body,
    image_config,
    logprobs_as_number,
    plain_messages,
    prompt_flags,
    reasoning_outside_total,
    reasoning_repeated,
    stream_only,
    temperature_open_interval,
    think_tags,
)

QUIRKS: dict[str, Quirk] = {
    quirk.name: quirk
    for quirk in (
        think_tags.QUIRK,
        reasoning_repeated.QUIRK,
        reasoning_outside_total.QUIRK,
        google_in_extra_body.QUIRK,
        plain_messages.QUIRK,
        temperature_open_interval.QUIRK,
        logprobs_as_number.QUIRK,
        image_config.QUIRK,
        prompt_flags.QUIRK,
        stream_only.QUIRK,
    )
}
"""All quirks by name."""
