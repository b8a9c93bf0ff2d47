"""`POST /v1/videos`: begins the durable job of a film and shows it; everything else of films is in `http.videos`."""

import msgspec
from msgspec import Raw

from trunkline.calls.gate import Gate
from trunkline.calls.media import MediaAsk, MediaCalls
from trunkline.calls.media_answer import Telling
from trunkline.core.errors import GatewayError
from trunkline.http.call_headers import read_headers, read_request_id
from trunkline.http.cors import cors_headers
from trunkline.http.error_response import respond_error, respond_json
from trunkline.http.exchange import Exchange
from trunkline.http.job_answer import JobAnswer
from trunkline.http.live import Live
from trunkline.http.media_body import media_route, read_media_body
from trunkline.http.videos import POLL, Films
from trunkline.ingress.openai_videos import parse_film

FILES = ("input_reference", "image")


class FilmMaking:
    """The endpoint's handler, behind the front door."""

    def __init__(self, live: Live, gate: Gate, calls: MediaCalls, films: Films, answer: JobAnswer) -> None:
        self._live = live
        self._gate = gate
        self._calls = calls
        self._films = films
        self._answer = answer

    async def __call__(self, exchange: Exchange) -> None:
        """Answer one request."""
        request_id = read_request_id(exchange)
        headers = [("x-request-id", request_id), *cors_headers(exchange, self._live.settings)]
        caller = None
        try:
            caller = await self._gate.caller(exchange.header(b"authorization"), request_id)
            caller = read_headers(exchange, caller, self._live.settings)
            body = read_media_body(exchange, FILES)
            asked = parse_film(body.fields, body.files)
            style = caller.media_style or caller.key.media_style
            route = media_route(self._live.table.route(asked.model), "video")
            telling = Telling(
                form="videos",
                style=style or route.settings.media_style or "markdown",  # type: ignore[arg-type]
                progress=route.settings.progress,
                traceparent=caller.traceparent,
                trace=caller.trace,
            )
            job = await self._calls.start(
                MediaAsk(
                    read=asked.read,
                    route=route,
                    caller=caller,
                    path=exchange.path,
                    body_hash=body.hash,
                    answer=Raw(msgspec.json.encode(telling)),
                    media_style=telling.style,
                    picture="input_reference",
                    callback_url=asked.callback_url,
                )
            )
        except GatewayError as error:
            self._gate.refused(request_id, caller, exchange.path, error)
            respond_error(exchange, error, headers)
            return
        respond_json(exchange, await self._films.shown(job), [*headers, POLL, *self._answer.told(job)])
