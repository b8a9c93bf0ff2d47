"""Signed links of media: `{base}/v1/media/{id}?exp=…&sig=…`."""

import hashlib
import hmac
from typing import Literal

Verdict = Literal["ok", "expired", "wrong"]


def sign(secret: bytes, media_id: str, exp: int) -> str:
    """Sign one medium's link, good until `exp` (Unix seconds; 0: for ever): HMAC-SHA-256, 64 hex digits."""
    return hmac.new(secret, f"media\n{media_id}\n{exp}".encode(), hashlib.sha256).hexdigest()


def verify(secret: bytes, media_id: str, exp: str, sig: str, now: int) -> Verdict:
    """Judge a link as it came, in constant time; a wrong signature is wrong whatever its date."""
    if not (exp.isascii() and exp.isdecimal()) or len(exp) > 12:
        return "wrong"
    if not hmac.compare_digest(sign(secret, media_id, int(exp)).encode(), sig.encode("utf-8", "replace")):
        return "wrong"
    return "expired" if 0 < int(exp) <= now else "ok"


def link(secret: bytes, base: str, media_id: str, expires_at: int | None) -> str:
    """Give a client's link. `base` is what was fixed when the call was admitted; `expires_at` None: for ever."""
    exp = expires_at or 0
    return f"{base.rstrip('/')}/v1/media/{media_id}?exp={exp}&sig={sign(secret, media_id, exp)}"
