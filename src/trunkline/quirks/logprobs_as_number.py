"""Log probabilities are asked for by one number, in place of `logprobs` and `top_logprobs`."""

from msgspec import Raw

from trunkline.core.quirk import Quirk


def change(fields: dict[str, Raw]) -> None:
    """Put the number of alternatives into `logprobs`."""
    asked, top = fields.get("logprobs"), fields.pop("top_logprobs", None)
    if asked is not None and bytes(asked) == b"true":
        fields["logprobs"] = top if top is not None and bytes(top).isdigit() and int(bytes(top)) else Raw(b"1")
    elif asked is not None and bytes(asked) == b"false":
        del fields["logprobs"]


QUIRK = Quirk("logprobs_as_number", request=change)
