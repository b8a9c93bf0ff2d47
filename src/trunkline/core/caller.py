"""Who makes a call, and what goes with it beside its body."""

from msgspec import Struct

from trunkline.core.keys import ANONYMOUS, Key


class Caller(Struct, frozen=True):
    """The client of one call."""

    request_id: str
    """In answers (`x-request-id`), logs and the ledger; taken over when the client sent one."""
    key: Key = ANONYMOUS
    link_base: str = ""
    """What media links of this call begin with, fixed when it is admitted."""
    idempotency_key: str = ""
    traceparent: str = ""
    media_style: str = ""
    resume: bool = False
    on_disconnect: str = ""
    cache: bool = False
    retry_count: int = 0
    trace: bool = False
    """What the provider sends is to be kept for a while, for the operator to look at."""
