"""The playground at `/` and the operator's pages at `/admin/`: static files under a strict content security policy."""

import hashlib
from collections.abc import Mapping
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


def routes(files: Mapping[str, Path], why_not: str) -> list[BaseRoute]:
    """Serve the built `files` (by address, with `….br` and `….gz` beside them); without any, say `why_not`."""

    async def playground(request: Request) -> Response:
        return _page(request, files, "index.html", why_not)

    async def operator(request: Request) -> Response:
        return _page(request, files, "admin/index.html", why_not)

    async def to_operator(_: Request) -> Response:
        return RedirectResponse("admin/")  # relative, so that it is right behind any path prefix

    async def asset(request: Request) -> Response:
        return _file(request, files, f"assets/{request.path_params['name']}", "public, max-age=31536000, immutable")

    return [
        Route("/", playground),
        Route("/admin", to_operator),
        Route("/admin/", operator),
        Route("/assets/{name}", asset),
    ]


def _page(request: Request, files: Mapping[str, Path], name: str, why_not: str) -> Response:
    if name in files:
        return _file(request, files, name, "no-cache")
    from html import escape  # noqa: PLC0415 - half a megabyte of entities

    text = (
        "<!doctype html><html lang=en><meta charset=utf-8><title>Trunkline</title><h1>Trunkline is running</h1>"
        f"<p>The API is at <code>/v1</code>. {escape(why_not)}</p>"
        f"<p>To build the pages, run this in the project’s folder, and start again:</p><pre>{escape(BUILD)}</pre>"
    )
    return Response(text, media_type="text/html", headers={**HEADERS, "cache-control": "no-store"})


def _file(request: Request, files: Mapping[str, Path], name: str, cache: str) -> Response:
    if name not in files or name.endswith((".br", ".gz")):
        raise HTTPException(404)
    coding = _coding(request.headers.get("accept-encoding", ""), files, name)
    body = files[name + coding].read_bytes()
    headers = {**HEADERS, "cache-control": cache, "etag": f'"{hashlib.sha256(body).hexdigest()[:24]}"'}
    if headers["etag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if coding:
        headers["content-encoding"] = coding.removeprefix(".").replace("gz", "gzip")
    return Response(body, media_type=TYPES.get(name.rpartition(".")[2], "application/octet-stream"), headers=headers)


def _coding(accepted: str, files: Mapping[str, Path], name: str) -> str:
    """Give the suffix of the smallest variant that the client takes."""
    offered = {
        part.split(";")[0].strip().lower() for part in accepted.split(",") if "q=0" not in part.replace("q=0.", "")
    }
    if "br" in offered and f"{name}.br" in files:
        return ".br"
    return ".gz" if "gzip" in offered and f"{name}.gz" in files else ""
