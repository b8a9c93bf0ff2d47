"""Reading what an upstream counted: OpenAI's usage object, in all the spellings it comes in."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from trunkline.core.events import Usage
from trunkline.core.money import microusd
from trunkline.wire.mend import mend
from trunkline.wire.read import MOST_COUNT, as_count, as_number, dicts


class _Details(Struct):
    cached_tokens: Any = None
    cache_write_tokens: Any = None
    cache_creation_tokens: Any = None
    audio_tokens: Any = None
    image_tokens: Any = None
    reasoning_tokens: Any = None
    accepted_prediction_tokens: Any = None
    rejected_prediction_tokens: Any = None


class _Usage(Struct):
    prompt_tokens: Any = None
    completion_tokens: Any = None
    total_tokens: Any = None
    input_tokens: Any = None
    output_tokens: Any = None
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None
    input_tokens_details: _Details | None = None
    output_tokens_details: _Details | None = None
    cached_tokens: Any = None
    prompt_cache_hit_tokens: Any = None
    cost: Any = None
    cost_in_usd_ticks: Any = None
    promptTokens: Any = None  # noqa: N815 - as on the wire
    completionTokens: Any = None  # noqa: N815 - as on the wire
    totalTokens: Any = None  # noqa: N815 - as on the wire
    inputTokens: Any = None  # noqa: N815 - as on the wire
    outputTokens: Any = None  # noqa: N815 - as on the wire
    video_tokens: Any = None
    reasoning_tokens: Any = None
    cache_read_input_tokens: Any = None
    cache_creation_input_tokens: Any = None
    promptTokenCount: Any = None  # noqa: N815 - as on the wire
    candidatesTokenCount: Any = None  # noqa: N815 - as on the wire
    thoughtsTokenCount: Any = None  # noqa: N815 - as on the wire
    totalTokenCount: Any = None  # noqa: N815 - as on the wire
    prompt_n: Any = None
    cache_n: Any = None
    predicted_n: Any = None


Count = Annotated[int, Meta(ge=0, lt=MOST_COUNT)]


class _PlainInputs(Struct, frozen=True, forbid_unknown_fields=True):
    cached_tokens: Count = 0
    audio_tokens: Count = 0


class _PlainOutputs(Struct, frozen=True, forbid_unknown_fields=True):
    reasoning_tokens: Count = 0
    audio_tokens: Count = 0
    accepted_prediction_tokens: Count = 0
    rejected_prediction_tokens: Count = 0


_NO_INPUTS = _PlainInputs()
_NO_OUTPUTS = _PlainOutputs()


class PlainUsage(Struct, forbid_unknown_fields=True):
    """What OpenAI itself sends, and nothing else."""

    prompt_tokens: Count
    completion_tokens: Count
    total_tokens: Count
    prompt_tokens_details: _PlainInputs = _NO_INPUTS
    completion_tokens_details: _PlainOutputs = _NO_OUTPUTS


_NO_DETAILS = _Details()
_MOST_DOLLARS = 10**9
_TICKS_PER_MICROUSD = 10_000  # 10^10 ticks are a dollar


def read_usage(value: Any) -> Usage | None:
    """Read a usage object; None where it holds no number but zeros (zeros are "unknown", rule 12 of section 9).

    `completion_tokens` is taken as OpenAI means it, reasoning included; the quirk `reasoning_outside_total`
    repairs it for who counts otherwise.
    """
    try:
        return read_plain_usage(msgspec.convert(value, PlainUsage))
    except (msgspec.ValidationError, RecursionError):
        pass  # the usual case of all others
    if type(value) is list:
        value = next(dicts(value), None)
    raw = mend(value, _Usage)
    if raw is None:
        return None
    read, written = as_count(raw.cache_read_input_tokens), as_count(raw.cache_creation_input_tokens)
    prompt = _first(raw.prompt_tokens, raw.promptTokens, raw.inputTokens, raw.promptTokenCount)
    if not prompt:  # these names come with what the cache held beside them
        prompt = (as_count(raw.input_tokens) + read + written) or as_count(raw.prompt_n) + as_count(raw.cache_n)
    completion = _first(
        raw.completion_tokens, raw.output_tokens, raw.completionTokens, raw.outputTokens, raw.video_tokens
    )
    if not completion:
        completion = as_count(raw.candidatesTokenCount) + as_count(raw.thoughtsTokenCount) or as_count(raw.predicted_n)
    total = _first(raw.total_tokens, raw.totalTokens, raw.totalTokenCount)
    if not (prompt or completion or total):
        return None
    inputs = raw.prompt_tokens_details or raw.input_tokens_details or _NO_DETAILS
    outputs = raw.completion_tokens_details or raw.output_tokens_details or _NO_DETAILS
    cached = _first(inputs.cached_tokens, raw.cached_tokens, raw.prompt_cache_hit_tokens, read)
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=max(total, prompt + completion),
        cached_tokens=min(cached, prompt),
        cache_write_tokens=_first(inputs.cache_write_tokens, inputs.cache_creation_tokens, written),
        audio_input_tokens=as_count(inputs.audio_tokens),
        image_input_tokens=as_count(inputs.image_tokens),
        reasoning_tokens=_first(outputs.reasoning_tokens, raw.reasoning_tokens, raw.thoughtsTokenCount),
        audio_output_tokens=as_count(outputs.audio_tokens),
        image_output_tokens=as_count(outputs.image_tokens),
        accepted_prediction_tokens=as_count(outputs.accepted_prediction_tokens),
        rejected_prediction_tokens=as_count(outputs.rejected_prediction_tokens),
        cost_microusd=_cost(raw),
    )


def read_plain_usage(raw: PlainUsage) -> Usage | None:
    """Give what OpenAI counted; None where it is nothing but zeros."""
    prompt, completion, total = raw.prompt_tokens, raw.completion_tokens, raw.total_tokens
    total = max(total, prompt + completion)
    if not total:
        return None
    inputs, outputs = raw.prompt_tokens_details, raw.completion_tokens_details
    if inputs is _NO_INPUTS and outputs is _NO_OUTPUTS:
        return Usage(prompt, completion, total)
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=total,
        cached_tokens=min(inputs.cached_tokens, prompt),
        audio_input_tokens=inputs.audio_tokens,
        reasoning_tokens=outputs.reasoning_tokens,
        audio_output_tokens=outputs.audio_tokens,
        accepted_prediction_tokens=outputs.accepted_prediction_tokens,
        rejected_prediction_tokens=outputs.rejected_prediction_tokens,
    )


def _first(*values: Any) -> int:
    """Give the first count that is not zero."""
    return next((count for value in values if (count := as_count(value))), 0)


def _cost(raw: _Usage) -> int | None:
    told = raw.cost
    dollars = as_number(told["total_cost"] if type(told) is dict and "total_cost" in told else told)
    if dollars is not None and 0 <= dollars < _MOST_DOLLARS:
        return microusd(dollars)
    ticks = as_count(raw.cost_in_usd_ticks)
    return -(-ticks // _TICKS_PER_MICROUSD) if ticks else None
