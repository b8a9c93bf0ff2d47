"""A chat request in OpenAI's own words, for all who take it so."""

from typing import Any

import msgspec
from msgspec import Raw

from trunkline.core.chat import ChatRequest, Target, UpstreamRequest
from trunkline.wire.asked import fitted

_encode = msgspec.json.Encoder().encode
_INCLUDE_USAGE = Raw(b'{"include_usage":true}')


def build_openai(request: ChatRequest, target: Target) -> UpstreamRequest:
    """Build the request: every member as it was sent, usage asked for, members renamed and dropped as the TOML says."""
    fields = dict(request.fields)
    fields["model"] = Raw(_encode(target.model))
    options = fields.pop("stream_options", None)
    if request.stream:
        fields["stream"] = Raw(b"true")
        fields["stream_options"] = _stream_options(options)
    if target.drop or target.rename:
        fields = fitted(fields, target)
    return UpstreamRequest(target.path or "/chat/completions", _encode(fields))


def _stream_options(asked: Raw | None) -> Raw:
    """Usage is always asked for; `include_cost` is between the client and the gateway."""
    if asked is None:
        return _INCLUDE_USAGE
    options = msgspec.json.decode(asked, type=dict[str, Any] | None) or {}
    options.pop("include_cost", None)
    return Raw(msgspec.json.encode({**options, "include_usage": True}))
