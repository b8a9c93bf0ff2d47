"""AWS Signature Version 4 in a header (AWS General Reference, "Create a signed AWS API request")."""

import hashlib
import hmac
import re
from datetime import datetime
from typing import NamedTuple
from urllib.parse import quote, unquote_plus

from trunkline.core.ports import HttpRequest
from trunkline.upstream.url import split

_ALGORITHM = "AWS4-HMAC-SHA256"
# What the client writes itself or a proxy may change on the way.
_UNSIGNED = frozenset({"connection", "content-length", "expect", "transfer-encoding", "user-agent"})


class AwsKey(NamedTuple):
    """An access key. A session token, if any, is a header of the request: `x-amz-security-token`."""

    access_key_id: str
    secret: str

    def __repr__(self) -> str:
        """Never show the secret."""
        return f"AwsKey({self.access_key_id})"


def signature_headers(
    request: HttpRequest, key: AwsKey, *, region: str, service: str, now: datetime
) -> tuple[tuple[str, str], ...]:
    """Give the headers that sign a request as it stands; `now` in UTC."""
    place, target = split(request.url)
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    given: dict[str, list[str]] = {"host": [place.authority]}
    for name, value in (*request.headers, ("x-amz-date", stamp)):
        if name not in _UNSIGNED:
            given.setdefault(name, []).append(re.sub(" +", " ", value.strip()))
    names = ";".join(sorted(given))
    headers = "".join(f"{name}:{','.join(given[name])}\n" for name in sorted(given))
    path, _, query = target.partition("?")
    body = hashlib.sha256(request.body).hexdigest()
    canonical = "\n".join((request.method, _quoted(path, "/"), _canonical_query(query), headers, names, body))

    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    to_sign = "\n".join((_ALGORITHM, stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    signing_key = f"AWS4{key.secret}".encode()
    for part in scope.split("/"):
        signing_key = _hmac(signing_key, part)
    signature = _hmac(signing_key, to_sign).hex()
    credential = f"Credential={key.access_key_id}/{scope}, SignedHeaders={names}, Signature={signature}"
    return (("x-amz-date", stamp), ("authorization", f"{_ALGORITHM} {credential}"))


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")


def _quoted(text: str, safe: str = "") -> str:
    return quote(text, safe=f"{safe}-_.~")


def _canonical_query(query: str) -> str:
    pairs = [pair.partition("=") for pair in query.split("&") if pair]
    encoded = sorted((_quoted(unquote_plus(name)), _quoted(unquote_plus(value))) for name, _, value in pairs)
    return "&".join(f"{name}={value}" for name, value in encoded)
