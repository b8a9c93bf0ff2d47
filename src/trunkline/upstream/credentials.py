"""A provider's credential, and how it is put on a request."""

import hashlib
import hmac
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import msgspec

from trunkline.core.ports import HttpRequest, HttpResponse
from trunkline.core.provider import AuthKind
from trunkline.core.secret import SHORT_CHARS, Secret
from trunkline.upstream.sigv4 import AwsKey, signature_headers
from trunkline.upstream.unrepeated import Unrepeated

Authorizer = Callable[[HttpRequest], HttpRequest]

JWT_LIFE_S = 210
JWT_KEPT_S = 180
"""A token is used for less than it lives."""

_STATIC = {
    "bearer": ("authorization", "Bearer "),
    "key": ("authorization", "Key "),
    "api-key": ("api-key", ""),
    "x-api-key": ("x-api-key", ""),
    "x-goog-api-key": ("x-goog-api-key", ""),
}


class Credential:
    """One key of a provider, ready to be put on requests; it never shows the secret.

    `id` is the same in every process that has the same key: what health and cool-downs are kept by.
    `name` says where the key came from. Without a key, requests stay as they are.
    Raises ValueError, in words for whoever wrote the configuration.
    """

    __slots__ = ("_authorize", "_secret", "fixed", "id", "name")

    def __init__(
        self,
        auth: AuthKind,
        key: Secret | None,
        options: Mapping[str, str] | None = None,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        value = key.reveal() if key is not None else ""
        self.id = hashlib.sha256(b"trunkline credential\0" + value.encode()).hexdigest()[:12] if value else "none"
        self._secret = value.encode()
        self.name = key.name if key is not None else "none"
        self.fixed = _fixed(auth, value)
        """The headers that it puts on every request alike; None: each is signed."""
        self._authorize = _signer(auth, value, options or {}, now_ns) if self.fixed is None else None

    def authorize(self, request: HttpRequest) -> HttpRequest:
        """Give the request with the key on it. A signature covers it as it stands: nothing may be added afterwards."""
        if self._authorize is not None:
            return self._authorize(request)
        return _with(request, *self.fixed) if self.fixed else request

    def unrepeated(self, response: HttpResponse) -> HttpResponse:
        """Give an answer that does not repeat the key."""
        return Unrepeated(response, self._secret) if len(self._secret) >= SHORT_CHARS else response

    def __repr__(self) -> str:
        return f"Credential({self.name})"


def _fixed(auth: AuthKind, key: str) -> tuple[tuple[str, str], ...] | None:
    if not key or auth == "none":
        return ()
    if not key.isascii() or not key.isprintable() or key != key.strip():
        raise ValueError("the api_key holds a blank at an end, a line break or another character that no header takes")
    if auth not in _STATIC:
        return None
    name, prefix = _STATIC[auth]
    return ((name, prefix + key),)


def _signer(auth: AuthKind, key: str, options: Mapping[str, str], now_ns: Callable[[], int]) -> Authorizer:
    return _sigv4(key, options, now_ns) if auth == "sigv4" else _jwt(key, now_ns)


def _with(request: HttpRequest, *headers: tuple[str, str]) -> HttpRequest:
    return msgspec.structs.replace(request, headers=(*request.headers, *headers))


def _sigv4(secret: str, options: Mapping[str, str], now_ns: Callable[[], int]) -> Authorizer:
    missing = [f"options.{name}" for name in ("access_key_id", "region", "service") if not options.get(name)]
    if missing:
        raise ValueError(f"auth = 'sigv4' needs {' and '.join(missing)}")
    key = AwsKey(options["access_key_id"], secret)
    region, service = options["region"], options["service"]

    def sign(request: HttpRequest) -> HttpRequest:
        now = datetime.fromtimestamp(now_ns() // 1_000_000_000, UTC)
        return _with(request, *signature_headers(request, key, region=region, service=service, now=now))

    return sign


def _jwt(key: str, now_ns: Callable[[], int]) -> Authorizer:
    key_id, _, secret = key.partition(".")
    if not (key_id and secret):
        raise ValueError("the api_key of auth = 'bigmodel_jwt' is ID.SECRET")
    header = ("authorization", "")
    until_ms = 0

    def put(request: HttpRequest) -> HttpRequest:
        nonlocal header, until_ms
        now_ms = now_ns() // 1_000_000
        if now_ms >= until_ms:
            until_ms = now_ms + JWT_KEPT_S * 1000
            header = ("authorization", f"Bearer {_signed_token(key_id, secret, now_ms)}")
        return _with(request, header)

    return put


def _signed_token(key_id: str, secret: str, now_ms: int) -> str:
    """Make a JSON Web Token (RFC 7519, HS256) with this provider's members, times in milliseconds."""
    payload = {"api_key": key_id, "exp": now_ms + JWT_LIFE_S * 1000, "timestamp": now_ms}
    head = {"alg": "HS256", "sign_type": "SIGN"}
    text = b".".join(_base64url(msgspec.json.encode(part)) for part in (head, payload))
    return f"{text.decode()}.{_base64url(hmac.digest(secret.encode(), text, 'sha256')).decode()}"


def _base64url(data: bytes) -> bytes:
    return urlsafe_b64encode(data).rstrip(b"=")
