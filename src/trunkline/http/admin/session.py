"""Who may use the operators' API: the admin key as a bearer, a session's cookie, or this machine alone."""

import base64
import hmac
import secrets
import time
from collections import deque

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from trunkline import __version__
from trunkline.core.errors import GatewayError
from trunkline.core.loopback import is_loopback
from trunkline.core.secret import Secret
from trunkline.http.admin.reading import read_body

COOKIE = "trunkline_admin"
CSRF_HEADER = "x-trunkline-csrf"
LASTS_S = 12 * 3600
WRONG_KEYS_A_MINUTE = 10
MOST_PEERS = 10_000
_FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-prefix")
NO_SESSION = "Log in with the admin key, or send it as `Authorization: Bearer …`."
NO_KEY = (
    "No admin key is configured, so nobody can log in from elsewhere: set TRUNKLINE_ADMIN_KEY (or `server.admin_key`) "
    "and start the gateway again."
)


class Login(Struct, forbid_unknown_fields=True):
    """The body of a login."""

    admin_key: str


class Sessions:
    """Begins sessions and tells who has one. Nothing is stored: a cookie is signed, and holds on every replica."""

    def __init__(self, secret: bytes, admin_key: Secret | None, *, loopback: bool) -> None:
        """`secret` is the server's; `loopback`: only this machine reaches the listener."""
        own = admin_key.reveal().encode() if admin_key else b""
        self._sign = hmac.digest(hmac.digest(secret, b"admin sessions", "sha256"), own, "sha256")
        self._admin_key = admin_key
        self._loopback = loopback
        self._wrong: dict[str, deque[float]] = {}

    def check(self, request: Request) -> None:
        """Let a request pass. Raises GatewayError `invalid_api_key`, `permission_denied`."""
        scheme, _, sent = request.headers.get("authorization", "").partition(" ")
        if self._admin_key is not None and scheme.lower() == "bearer" and self._admin_key == Secret(sent.strip()):
            return
        session = self._session(request)
        if session is None:
            raise GatewayError(
                "invalid_api_key", NO_SESSION if self._admin_key is not None else f"{NO_SESSION} {NO_KEY}"
            )
        if request.method in {"GET", "HEAD"}:
            return
        _same_origin(request)
        if not hmac.compare_digest(request.headers.get(CSRF_HEADER, "").encode(), self._csrf(session).encode()):
            raise GatewayError("permission_denied", f"The header {CSRF_HEADER} is missing or wrong.")

    async def show(self, request: Request) -> Response:
        """`GET /admin/api/session`: on this machine, this begins one."""
        session = self._session(request)
        if session is None and self._open(request):
            return self._begin(request, "open")
        return JSONResponse(self._told(request, session))

    async def log_in(self, request: Request) -> Response:
        """`POST /admin/api/session`. Raises GatewayError: the key is wrong, too often wrong, or there is none."""
        _same_origin(request)
        login = await read_body(request, Login)
        if self._admin_key is None:
            raise GatewayError("permission_denied", NO_KEY)
        wrong = self._tries(request.client.host if request.client else "")
        if len(wrong) >= WRONG_KEYS_A_MINUTE:
            wait_s = max(1, round(60 - (time.monotonic() - wrong[0])))
            headers = (("retry-after", str(wait_s)),)
            raise GatewayError("rate_limit_exceeded", "Too many wrong admin keys; wait a minute.", headers=headers)
        if self._admin_key != Secret(login.admin_key):
            wrong.append(time.monotonic())
            raise GatewayError("invalid_api_key", "The admin key is wrong.", param="admin_key")
        return self._begin(request, "key")

    async def log_out(self, _request: Request) -> Response:
        """`DELETE /admin/api/session`."""
        answer = Response(status_code=204)
        answer.delete_cookie(COOKIE, path="", httponly=True, samesite="strict")
        return answer

    def _begin(self, request: Request, kind: str) -> Response:
        session = f"{kind}.{secrets.token_urlsafe(12)}.{int(time.time_ns() // 1_000_000_000) + LASTS_S}"
        answer = JSONResponse(self._told(request, session))
        answer.set_cookie(
            COOKIE,
            f"{session}.{self._mac(b'cookie', session)}",
            max_age=LASTS_S,
            path=None,  # the browser's default fits behind any prefix
            secure=_by_https(request),
            httponly=True,
            samesite="strict",
        )
        return answer

    def _told(self, request: Request, session: str | None) -> dict[str, object]:
        return {
            "authenticated": session is not None,
            "open": self._open(request),
            "admin_key_set": self._admin_key is not None,
            "csrf": self._csrf(session) if session else None,
            "expires_at": int(session.rpartition(".")[2]) if session else None,
            "version": __version__,
        }

    def _session(self, request: Request) -> str | None:
        """Give the signed part of the request's cookie, where it holds for this request."""
        session, _, mac = request.cookies.get(COOKIE, "").rpartition(".")
        if not hmac.compare_digest(mac.encode(), self._mac(b"cookie", session).encode()):
            return None
        kind, _, expires = session.split(".")
        if int(expires) <= time.time_ns() // 1_000_000_000:
            return None
        return session if kind == "key" or self._open(request) else None

    def _csrf(self, session: str) -> str:
        return self._mac(b"csrf", session)

    def _mac(self, label: bytes, session: str) -> str:
        mac = hmac.digest(self._sign, label + b"\0" + session.encode("utf-8", "surrogatepass"), "sha256")
        return base64.urlsafe_b64encode(mac).decode().rstrip("=")

    def _open(self, request: Request) -> bool:
        """Tell whether the request comes from this machine itself, by its own name, through no proxy."""
        if not self._loopback or any(name in request.headers for name in _FORWARDED):
            return False
        host = request.headers.get("host", "")
        return is_loopback(host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0])

    def _tries(self, peer: str) -> deque[float]:
        """Give when this peer tried wrong keys in the last minute."""
        if peer not in self._wrong and len(self._wrong) >= MOST_PEERS:
            del self._wrong[next(iter(self._wrong))]
        wrong = self._wrong.setdefault(peer, deque())
        while wrong and wrong[0] < time.monotonic() - 60:
            wrong.popleft()
        return wrong


def _same_origin(request: Request) -> None:
    if request.headers.get("sec-fetch-site", "none") not in {"same-origin", "none"}:
        raise GatewayError("permission_denied", "This was asked by a page of another origin.")


def _by_https(request: Request) -> bool:
    forwarded = request.headers.get("x-forwarded-proto", "").rpartition(",")[2].strip().lower()
    return request.url.scheme == "https" or forwarded == "https"
