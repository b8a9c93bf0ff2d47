"""Members of a chat request that are passed on as they were sent, but are of the kind that every provider expects.

Ids and `reasoning_effort` are left to the providers: what they take there differs, and many do not look.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Raw, Struct

from trunkline.ingress.request_body import typed, wrong


class _Object(Struct, gc=False):
    """An object, whatever is in it."""


Limit = Annotated[int, Meta(ge=-2)]
"""llama.cpp takes -1 for no limit, Ollama -2 for what the context holds."""
Ranks = Annotated[int, Meta(ge=-1)]
"""vLLM takes -1 for the whole vocabulary."""
Seed = int | float | Literal["", "auto", "default", "adaptive"]
"""llama.cpp takes fractions, too, and our media models words that leave it to them."""
Words = str | list[str]
WordOrObject = str | _Object
Objects = list[_Object]
Biases = _Object | list[Raw]
"""llama.cpp takes pairs, too."""


class PassedOn(Struct, kw_only=True):
    """Such members, where nothing is wrong with them."""

    max_tokens: Limit | None = None
    max_completion_tokens: Limit | None = None
    top_logprobs: Ranks | None = None
    seed: Seed | None = None
    temperature: float | None = None
    top_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    logit_bias: Biases | None = None
    logprobs: bool | int | None = None
    parallel_tool_calls: bool | None = None
    store: bool | None = None
    stop: Words | None = None
    modalities: Words | None = None
    verbosity: str | None = None
    service_tier: str | None = None
    tool_choice: WordOrObject | None = None
    function_call: WordOrObject | None = None
    response_format: WordOrObject | None = None
    audio: bool | _Object | None = None
    prediction: _Object | None = None
    metadata: _Object | None = None
    tools: Objects | None = None
    functions: Objects | None = None


_ALLOWED: dict[Any, str] = {
    Limit | None: "a whole number, 1 or more; to some providers -1 is no limit",
    Ranks | None: "a whole number, 0 or more",
    Seed | None: "a whole number",
    float | None: "a number",
    bool | None: "true or false",
    bool | int | None: "true or false",
    Biases | None: "an object that gives tokens their bias",
    str | None: "a string",
    Words | None: "a string or an array of strings",
    WordOrObject | None: "a string or an object",
    bool | _Object | None: "an object",
    _Object | None: "an object",
    Objects | None: "an array of objects",
}
_PLAIN = (float | None, bool | None, bool | int | None)
_KINDS: dict[str, tuple[msgspec.json.Decoder[Any], str]] = {
    field.name: (msgspec.json.Decoder(field.type, strict=field.type == Seed | None), _ALLOWED[field.type])
    for field in msgspec.structs.fields(PassedOn)
}  # not strict: a whole number may be written 1e3
_NO_TEXT = frozenset(
    field.name for field in msgspec.structs.fields(PassedOn) if field.type in {Limit | None, Ranks | None, *_PLAIN}
)
"""A number in a string is none, as at OpenAI: most servers refuse it, in words of their own."""


def check(fields: dict[str, Raw]) -> None:
    """Look at these members. Raises GatewayError (400) that names the one that is wrong and what is allowed."""
    for name, (kind, allowed) in _KINDS.items():
        typed(fields, name, kind, allowed)
        if name in _NO_TEXT and bytes(fields.get(name, b"")).startswith(b'"'):
            raise wrong(name, allowed)
