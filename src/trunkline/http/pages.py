"""The playground at `/` and the operator's pages at `/admin/`: static files under a strict content security policy."""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

HEADERS = {
    "content-security-policy": (
        "default-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; style-src 'self'; script-src 'self'; "
        "connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "vary": "accept-encoding",
}
TYPES = {"html": "text/html; charset=utf-8", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
BUILD = "npm --prefix web ci --omit=dev && npm --prefix web run build"
_ASSET = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,199}(?<!\.br)(?<!\.gz)")


def routes(built: Path, why_not: Callable[[], str]) -> list[BaseRoute]:
    """Serve what is in the folder `built` (with `….br` and `….gz` beside the files); without any pages, say `why_not`.

    It is looked into at each request: pages may be built anew while they are served.
    """

    async def playground(request: Request) -> Response:
        return _page(request, built / "index.html", why_not)

    async def operator(request: Request) -> Response:
        return _page(request, built / "admin" / "index.html", why_not)

    async def to_operator(_: Request) -> Response:
        return RedirectResponse("admin/")  # relative, so that it is right behind any path prefix

    async def asset(request: Request) -> Response:
        if not _ASSET.fullmatch(name := request.path_params["name"]):
            raise HTTPException(404)
        return _file(request, built / "assets" / name, "public, max-age=31536000, immutable")

    return [
        Route("/", playground),
        Route("/admin", to_operator),
        Route("/admin/", operator),
        Route("/assets/{name}", asset),
    ]


def _page(request: Request, page: Path, why_not: Callable[[], str]) -> Response:
    if page.is_file():
        return _file(request, page, "no-cache")
    from html import escape  # noqa: PLC0415 - half a megabyte of entities

    text = (
        "<!doctype html><html lang=en><meta charset=utf-8><title>Trunkline</title><h1>Trunkline is running</h1>"
        f"<p>The API is at <code>/v1</code>. {escape(why_not())}</p>"
        f"<p>To build the pages, run this in the project’s folder:</p><pre>{escape(BUILD)}</pre>"
    )
    return Response(text, media_type="text/html", headers={**HEADERS, "cache-control": "no-store"})


def _file(request: Request, file: Path, cache: str) -> Response:
    coding = _coding(request.headers.get("accept-encoding", ""), file)
    try:
        body = file.with_name(file.name + coding).read_bytes()
    except FileNotFoundError:
        raise HTTPException(404) from None
    headers = {**HEADERS, "cache-control": cache, "etag": f'"{hashlib.sha256(body).hexdigest()[:24]}"'}
    if headers["etag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if coding:
        headers["content-encoding"] = coding.removeprefix(".").replace("gz", "gzip")
    return Response(body, media_type=TYPES.get(file.suffix[1:], "application/octet-stream"), headers=headers)


def _coding(accepted: str, file: Path) -> str:
    """Give the suffix of the smallest variant that the client takes."""
    offered = {
        part.split(";")[0].strip().lower() for part in accepted.split(",") if "q=0" not in part.replace("q=0.", "")
    }
    found = (coding for name, coding in (("br", ".br"), ("gzip", ".gz")) if name in offered)
    return next((coding for coding in found if file.with_name(file.name + coding).is_file()), "")
