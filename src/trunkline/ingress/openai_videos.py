"""OpenAI Videos as clients speak them: what a request asks for, and the `video` object (wire.md section 2.2)."""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from trunkline.core.jobs import Finish, JobState
from trunkline.core.media import MediaInput, MediaRequest
from trunkline.core.route import RouteTarget
from trunkline.ingress.callback import read_callback
from trunkline.ingress.media_params import read_asked
from trunkline.ingress.openai_images import read_model

STATUS: dict[JobState, str] = {
    "queued": "queued",
    "submitting": "queued",
    "running": "in_progress",
    "storing": "in_progress",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "failed",
    "submit_unknown": "failed",
}


class FilmAsk(Struct, frozen=True):
    """A request of `POST /v1/videos`."""

    model: str
    fields: dict[str, Raw]
    pictures: tuple[MediaInput, ...] = ()
    """That came as files: the first frame."""
    callback_url: str = ""

    def read(self, item: RouteTarget) -> MediaRequest:
        """Read it for one target. Raises GatewayError (400)."""
        return read_asked(self.fields, "video", item, self.model, self.pictures)


def parse_film(fields: dict[str, Raw], files: tuple[MediaInput, ...]) -> FilmAsk:
    """Read a request, from JSON or a form. Raises GatewayError (400)."""
    return FilmAsk(read_model(fields), fields, files, read_callback(fields))


def video_object(finish: Finish) -> dict[str, Any]:
    """Write a job as OpenAI's `video` object: size and length as asked for, else as the film is, else as is usual."""
    job = finish.job
    request = msgspec.json.decode(job.request, type=MediaRequest)
    film = finish.media[0] if finish.media else None
    size = (film.width, film.height) if film else (request.width, request.height)
    usual = "" if request.ratio or request.tier else request.usual_size
    seconds = request.seconds or (film.duration_s if film else None) or request.usual_seconds
    failed = STATUS[job.state] == "failed"
    return {
        "id": job.id,
        "object": "video",
        "model": job.model,
        "status": STATUS[job.state],
        "progress": 100 if job.state == "completed" else min(int(job.progress or 0), 99),
        "created_at": job.created_ms // 1000,
        "completed_at": job.finished_ms // 1000 if job.state == "completed" and job.finished_ms else None,
        "expires_at": film.expires_ms // 1000 if film and film.expires_ms else None,
        "size": f"{size[0]}x{size[1]}" if size[0] and size[1] else usual or None,
        "seconds": f"{round(seconds, 2):g}" if seconds else None,
        "prompt": request.prompt,
        "remixed_from_video_id": None,
        "error": {"code": job.error_code, "message": job.error_message} if failed else None,
    }
