"""The child's HTTP side: OpenAI Images and OpenAI Videos over the studio, for one caller with one key."""

import base64
import binascii
import contextlib
import hmac
import secrets
import time
from typing import Annotated, Literal, TypeVar, get_args

import msgspec
from msgspec import Meta, Struct
from starlette.applications import Starlette
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from trunkline.local.scene.film import FilmOrder
from trunkline.local.scene.studio import BusyError, Film, Studio
from trunkline.local.scene.work import MAX_PIXELS, BadPictureError, PictureOrder

MODEL = "trunkline-scene"
MAX_BODY_BYTES = 64 * 1024 * 1024
MAX_SEED = 2**31 - 1
_FILM_PIXELS = 1920 * 1080

Shape = TypeVar("Shape", bound="_Asked")


class _Asked(Struct):
    prompt: Annotated[str, Meta(min_length=1, max_length=32000)]
    model: str = MODEL
    size: str | None = None
    seed: Annotated[int, Meta(ge=0, le=MAX_SEED)] | None = None


class ImageAsked(_Asked):
    """The body of `images/generations`, and of `images/edits` without its files; other members are ignored."""

    n: Annotated[int, Meta(ge=1, le=10)] | None = None
    output_format: Literal["png", "jpeg", "webp"] | None = None
    output_compression: Annotated[int, Meta(ge=1, le=100)] | None = None
    response_format: Literal["b64_json"] | None = None
    background: Literal["auto", "opaque"] | None = None


class VideoAsked(_Asked):
    """The body of `videos`; `fps` and `seed` are additions to OpenAI's."""

    seconds: Annotated[float, Meta(ge=1, le=12)] | None = None
    fps: Annotated[int, Meta(ge=1, le=30)] | None = None


class Problem(Exception):  # noqa: N818 - an answer, not a fault
    """An answer with an error body."""

    def __init__(self, status: int, message: str, code: str, param: str | None = None) -> None:
        super().__init__(message)
        self._status = status
        self._error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}

    def answer(self) -> Response:
        """Write it as OpenAI does."""
        headers = {"retry-after": "3"} if self._status == 429 else None
        return JSONResponse({"error": self._error}, self._status, headers)


class Endpoints:
    """The routes over one studio; `encoder` is what films are encoded by."""

    def __init__(self, studio: Studio, encoder: str) -> None:
        self._studio = studio
        self._encoder = encoder

    def routes(self) -> list[Route]:
        """List the routes."""
        return [
            Route("/health", self.health),
            Route("/v1/models", self.models),
            Route("/v1/images/generations", self.generate, methods=["POST"]),
            Route("/v1/images/edits", self.edit, methods=["POST"]),
            Route("/v1/videos", self.make_video, methods=["POST"]),
            Route("/v1/videos/{id}", self.video, methods=["GET", "DELETE"]),
            Route("/v1/videos/{id}/content", self.content),
        ]

    async def health(self, _request: Request) -> Response:
        """Say that the server answers."""
        return JSONResponse({"status": "ok"})

    async def models(self, _request: Request) -> Response:
        """Name the one model."""
        model = {"id": MODEL, "object": "model", "created": 0, "owned_by": "trunkline"}
        return JSONResponse({"object": "list", "data": [model]})

    async def generate(self, request: Request) -> Response:
        """Draw pictures of a prompt."""
        return await self._images(_read(await _members(request), ImageAsked))

    async def edit(self, request: Request) -> Response:
        """Draw onto the first of the given pictures."""
        members = await _members(request)
        given = await _file(members, "image", "image[]", "image[0]")
        if given is None:
            raise Problem(400, "image: a file (png, jpeg or webp) is needed.", "missing_required_parameter", "image")
        mask = await _file(members, "mask")
        return await self._images(_read(members, ImageAsked), given, mask or b"")

    async def _images(self, asked: ImageAsked, given: bytes = b"", mask: bytes = b"") -> Response:
        own = None if given else (1024, 1024)
        size = _size(asked.size, own, MAX_PIXELS, (64, 6144))
        seed = secrets.randbelow(MAX_SEED) if asked.seed is None else asked.seed
        form = asked.output_format or "png"
        orders = [
            PictureOrder(
                asked.prompt, (seed + number) % MAX_SEED, size, form, asked.output_compression or 90, given, mask
            )
            for number in range(asked.n or 1)
        ]
        made = await self._studio.pictures(orders)
        data = [{"b64_json": base64.b64encode(one.data).decode(), "revised_prompt": one.text} for one in made]
        answer = {"created": time.time_ns() // 10**9, "data": data, "output_format": form}
        return JSONResponse(answer | ({"size": "{}x{}".format(*size)} if size else {}))

    async def make_video(self, request: Request) -> Response:
        """Begin a film."""
        members = await _members(request)
        given = await _file(members, "input_reference")
        asked = _read(members, VideoAsked)
        size = _size(asked.size, (1280, 720), _FILM_PIXELS, (64, 1920))
        if size is None or size[0] % 2 or size[1] % 2:
            raise Problem(400, "size: both sides of a film must be even.", "invalid_value", "size")
        seed = secrets.randbelow(MAX_SEED) if asked.seed is None else asked.seed
        seconds, fps = asked.seconds or 4, asked.fps or 12
        order = FilmOrder(asked.prompt, seed, size, seconds, fps, self._encoder, given or b"")
        return JSONResponse(self._shown(self._studio.film(order, asked.model)))

    async def video(self, request: Request) -> Response:
        """Show a film's state, or forget it and stop the work on it."""
        film = self._find(request)
        if request.method == "DELETE":
            self._studio.drop(film)
            return JSONResponse({"id": film.id, "object": "video.deleted", "deleted": True})
        return JSONResponse(self._shown(film))

    async def content(self, request: Request) -> Response:
        """Give the film, or its cover as `thumbnail`."""
        film, variant = self._find(request), request.query_params.get("variant", "video")
        if variant not in {"video", "thumbnail"}:
            raise Problem(400, "variant: video or thumbnail.", "invalid_value", "variant")
        if not film.made.done() or film.made.exception():
            raise Problem(409, f"The film {film.id} is not completed.", "video_not_completed")
        made = film.made.result()
        return (
            Response(made.data, media_type="video/mp4")
            if variant == "video"
            else Response(made.cover, media_type="image/webp")
        )

    def _find(self, request: Request) -> Film:
        film = self._studio.films.get(request.path_params["id"])
        if film is None:
            raise Problem(404, "There is no such film.", "video_not_found", "id")
        return film

    def _shown(self, film: Film) -> dict[str, object]:
        """OpenAI's `video` object, with what was drawn as `revised_prompt` at the end."""
        error = film.made.exception() if film.made.done() else None
        percent = self._studio.percent(film)
        status = "failed" if error else "completed" if film.made.done() else "in_progress" if percent else "queued"
        code = "invalid_image" if isinstance(error, BadPictureError) else "server_error"
        return {
            "id": film.id,
            "object": "video",
            "model": film.model,
            "status": status,
            "progress": percent,
            "created_at": film.created_at,
            "size": "{}x{}".format(*film.order.size),
            "seconds": f"{film.order.seconds:g}",
            "prompt": film.order.prompt,
            "revised_prompt": film.made.result().text if status == "completed" else None,
            "error": {"code": code, "message": str(error) or type(error).__name__} if error else None,
        }


class _Door:
    """Lets in who knows the key, and nobody with too much."""

    def __init__(self, app: ASGIApp, key: str) -> None:
        self._app = app
        self._expected = f"Bearer {key}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers, answer = dict(scope.get("headers", ())), self._app
        if scope["type"] != "http" or scope["path"] == "/health":
            pass
        elif not hmac.compare_digest(headers.get(b"authorization", b""), self._expected):
            answer = Problem(401, "This server's key is needed as a bearer token.", "invalid_api_key").answer()
        elif int(headers.get(b"content-length", b"0")) > MAX_BODY_BYTES:
            answer = Problem(413, f"A body has at most {MAX_BODY_BYTES} bytes.", "request_too_large").answer()
        await answer(scope, receive, send)


def application(studio: Studio, key: str, encoder: str) -> Starlette:
    """Put the routes together, with the key asked of every request but `/health`."""
    routes, door = Endpoints(studio, encoder).routes(), Middleware(_Door, key=key)
    kinds = (Problem, BusyError, BadPictureError, HTTPException)
    return Starlette(routes=routes, middleware=[door], exception_handlers=dict.fromkeys(kinds, _answer))


async def _answer(_request: Request, error: Exception) -> Response:
    match error:
        case Problem():
            return error.answer()
        case BadPictureError():
            return Problem(400, str(error), "invalid_image", "image").answer()
        case HTTPException(status_code=status, detail=detail):
            return Problem(status, detail, "unknown_endpoint").answer()
    return Problem(429, "Too much is waiting; try again in a moment.", "rate_limit_exceeded").answer()


async def _members(request: Request) -> dict[str, object]:
    """Read the body, a JSON object or a form; of a form's repeated fields the first counts."""
    if request.headers.get("content-type", "").startswith("multipart/"):
        form: FormData = await request.form(max_part_size=1024 * 1024)
        return dict(reversed(form.multi_items()))
    try:
        return msgspec.json.decode(await request.body(), type=dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Problem(400, "The body must be a JSON object.", "invalid_json") from error


def _read(members: dict[str, object], shape: type[Shape]) -> Shape:
    told = {name: value for name, value in members.items() if name in shape.__struct_fields__ and value is not None}
    try:
        return msgspec.convert(told, shape, strict=False)
    except msgspec.ValidationError as error:
        reason, _, where = str(error).partition(" - at `$.")
        param = where.rstrip("`") or ("prompt" if "prompt" in reason else None)
        code = "missing_required_parameter" if "missing required field" in reason else "invalid_value"
        words = get_args(shape.__annotations__[param]) if param and "enum value" in reason else ()
        allowed = ", ".join(word for one in words for word in get_args(one))
        why = f" is {str(told[param])[:80]}; allowed is {allowed}" if param and allowed else f": {reason}"
        raise Problem(400, f"`{param}`{why}.", code, param) from error


async def _file(members: dict[str, object], *names: str) -> bytes | None:
    """Get the bytes of an upload or a data URL (bare, or as `image_url`) under the first of the names that is there."""
    for name in names:
        match members.get(name):
            case UploadFile() as upload:
                return await upload.read()
            case {"image_url": str(url)} | {"image_url": {"url": str(url)}} | str(url):
                _, encoding, data = url.partition(";base64,")
                with contextlib.suppress(binascii.Error):
                    if encoding:
                        return base64.b64decode(data, validate=True)
                raise Problem(400, f"{name}: a file or a base64 data URL is needed.", "invalid_value", name)
    return None


def _size(
    text: str | None, default: tuple[int, int] | None, pixels: int, sides: tuple[int, int]
) -> tuple[int, int] | None:
    """Read `WIDTHxHEIGHT`."""
    if text in {None, "", "auto"}:
        return default
    width, _, height = (text or "").partition("x")
    if not (
        width.isascii() and width.isdecimal() and height.isascii() and height.isdecimal() and len(width + height) < 10
    ):
        raise Problem(400, "size: WIDTHxHEIGHT in pixels, such as 1024x1024, or auto.", "invalid_value", "size")
    size = int(width), int(height)
    if min(size) < sides[0] or max(size) > sides[1] or size[0] * size[1] > pixels:
        allowed = f"sides of {sides[0]} to {sides[1]} pixels, at most {pixels} pixels in all"
        raise Problem(400, f"size: {allowed}.", "invalid_value", "size")
    return size
