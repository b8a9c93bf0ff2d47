"""Members of a chat request that are passed on as they were sent, but are of the kind that every provider expects."""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from trunkline.ingress.request_body import typed


class _Object(Struct, gc=False):
    """An object, whatever is in it."""


Objects = list[_Object]


class PassedOn(Struct, kw_only=True):
    """Such members, where nothing is wrong with them."""

    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    top_logprobs: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    logprobs: bool | int | None = None
    stop: str | list[str] | None = None
    tools: Objects | None = None
    functions: Objects | None = None


_ALLOWED = {
    int | None: "a whole number",
    float | None: "a number",
    bool | int | None: "true or false",
    str | list[str] | None: "a string or an array of strings",
    Objects | None: "an array of objects",
}
_KINDS: dict[str, tuple[msgspec.json.Decoder[Any], str]] = {
    field.name: (msgspec.json.Decoder(field.type, strict=False), _ALLOWED[field.type])  # numbers also as strings
    for field in msgspec.structs.fields(PassedOn)
}


def check(fields: dict[str, Raw]) -> None:
    """Look at the kind of these members. Raises GatewayError (400) that names the one that is wrong."""
    for name, (kind, allowed) in _KINDS.items():
        typed(fields, name, kind, allowed)
