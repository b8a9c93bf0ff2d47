"""The operator's side of the fake gateway: docs/admin-api.md, with invented numbers."""

import json
import math
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

Keep = Callable[[str, str, bytes], str]
Answer = Callable[[Request], Awaitable[Response]]
NOW = time.time_ns() // 1_000_000_000
CLIENTS = ["py_raw", "py_helper", "langchain_py", "litellm", "node_raw", "node_helper", "ai_sdk", "langchain_js"]


def row(**members: Any) -> dict[str, Any]:
    return members


def key(number: int, name: str, **more: Any) -> dict[str, Any]:
    blank = dict.fromkeys(
        (
            "group",
            "budget",
            "rpm",
            "tpm",
            "images_per_minute",
            "concurrent_streams",
            "media_style",
            "expires_at",
            "last_used_at",
        )
    )
    told = {
        "id": f"key_{number}",
        "name": name,
        "prefix": f"sk-tl-{number:04x}",
        "state": "active",
        "models": [],
        "metadata": {},
    }
    return blank | told | {"record": False, "cache": False, "created_at": NOW - 86400} | more


def budget(limit: int, spent: int, per: str = "month", reserved: int = 0) -> dict[str, Any]:
    resets = None if per == "total" else NOW + 86400
    return {
        "limit_microusd": limit,
        "per": per,
        "spent_microusd": spent,
        "reserved_microusd": reserved,
        "resets_at": resets,
    }


@dataclass
class FakeAdmin:
    """Sessions, sample data, and what the pages asked to have done."""

    admin_key: str = "admin-test-key"
    open: bool = True
    csrf: str = field(default_factory=lambda: secrets.token_hex(8))
    done: list[str] = field(default_factory=list)
    traces: dict[str, dict[str, Any]] = field(default_factory=dict)
    keys: list[dict[str, Any]] = field(default_factory=list)
    groups: list[dict[str, Any]] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    jobs: list[dict[str, Any]] = field(default_factory=list)
    media: list[dict[str, Any]] = field(default_factory=list)

    def fill(self, keep: Keep, picture: bytes, film: bytes) -> None:
        group = {"id": "grp_1", "name": "design"}
        self.groups = [group | {"budget": budget(20_000_000, 3_400_000), "keys": 2, "created_at": NOW - 86400}]
        self.keys = [
            key(
                1,
                "anna",
                group=group,
                budget=budget(5_000_000, 1_250_000, reserved=400_000),
                rpm=60,
                last_used_at=NOW - 40,
                models=["local/*"],
            ),
            key(2, "build-bot", budget=budget(2_000_000, 2_000_000, "day"), tpm=200_000, last_used_at=NOW - 4000),
            key(3, "field <b>trial</b>", state="blocked", budget=budget(10_000_000, 8_800_000, "total")),
            key(4, "old-laptop", state="revoked"),
        ]
        self.media = [self.sample(number, keep, picture, film) for number in range(7)]
        anna = {"id": "key_1", "name": "anna"}
        call = row(
            replica="a1", route="/v1/chat/completions", provider="local", attempts=1, stream_id=None, job_id=None
        )
        call |= row(key=anna, started_at=NOW - 6, first_event_ms=212.0, events=120, completion_tokens=118)
        waiting = row(key=None, first_event_ms=None, provider=None, completion_tokens=0)
        self.calls = [
            call | row(id="req_1", model="fast", kind="text", upstream_model="text", state="streaming"),
            call
            | waiting
            | row(id="req_2", model="local/video", kind="video", upstream_model="video", state="waiting"),
        ]
        job = row(provider="local", upstream_id="u-1", stream_id="strm_1", expected_s=9.5, prompt=None, key=None)
        job |= row(kind="video", model="local/video", upstream_model="video", created_at=NOW, started_at=NOW)
        job |= row(finished_at=None, cost_microusd=None, error=None, media=[], percent=None)
        fault = {"code": "content_filter", "message": "The film was filtered."}
        self.jobs = [
            job | row(id="video_1", state="running", percent=42.0),
            job
            | row(id="video_2", state="completed", finished_at=NOW + 9, cost_microusd=40_000, media=[self.media[2]]),
            job | row(id="video_3", state="failed", finished_at=NOW + 3, error=fault),
        ]

    def sample(self, number: int, keep: Keep, picture: bytes, film: bytes) -> dict[str, Any]:
        is_film = number == 2
        kind, mime_type = ("video", "video/mp4") if is_film else ("image", "image/png")
        url = "http://elsewhere.example" + keep(kind, mime_type, film if is_film else picture)
        cover = "http://elsewhere.example" + keep("cover", "image/png", picture) if is_film else None
        item = row(id=f"{kind[:3]}_{number}", kind=kind, mime_type=mime_type, bytes=91_234, width=240, height=180)
        item |= row(duration_s=4.0 if is_film else None, sha256="ab" * 32, url=url, cover_url=cover, job_id=None)
        key_ref = {"id": "key_1", "name": "anna"}
        return item | row(created_at=NOW - 600 * number, expires_at=NOW + 86400, key=key_ref, model=f"local/{kind}")

    def routes(self) -> list[BaseRoute]:
        inside: list[tuple[str, str, Answer]] = [
            ("GET", "/overview", self.overview),
            ("GET", "/calls", self.whole("calls")),
            ("DELETE", "/calls/{id}", self.end_call),
            ("GET", "/jobs", self.whole("jobs")),
            ("GET", "/jobs/{id}", self.job),
            ("POST", "/jobs/{id}/cancel", self.cancel),
            ("GET", "/keys", self.whole("keys")),
            ("POST", "/keys", self.make_key),
            ("PATCH", "/keys/{id}", self.change_key),
            ("POST", "/keys/{id}/{act}", self.act),
            ("GET", "/groups", self.whole("groups")),
            ("POST", "/groups", self.make_group),
            ("GET", "/usage", self.usage),
            ("GET", "/latency", self.latency),
            ("GET", "/repairs", self.repairs),
            ("GET", "/providers", self.providers),
            ("GET", "/media", self.whole("media")),
            ("POST", "/media/delete", self.delete_media),
            ("POST", "/inspect", self.inspect),
            ("GET", "/traces/{id}", self.trace),
        ]
        session = Route("/session", self.session, methods=["GET", "POST", "DELETE"])
        return [session, *(Route(path, self.guarded(answer), methods=[method]) for method, path, answer in inside)]

    def guarded(self, answer: Answer) -> Answer:
        async def checked(request: Request) -> Response:
            if request.cookies.get("trunkline_admin") != "yes":
                return fault(401, "invalid_api_key", "Log in with the admin key.")
            if request.method != "GET":
                if request.headers.get("x-trunkline-csrf") != self.csrf:
                    return fault(403, "permission_denied", "The CSRF header is missing.")
                self.done.append(f"{request.method} {request.url.path.partition('/admin/api/')[2]}")
            return await answer(request)

        return checked

    async def session(self, request: Request) -> Response:
        logged_in = self.open or request.cookies.get("trunkline_admin") == "yes"
        if request.method == "DELETE":
            gone = Response(status_code=204)
            gone.headers["set-cookie"] = "trunkline_admin=; Max-Age=0; HttpOnly; SameSite=Strict"
            return gone
        if request.method == "POST":
            if json.loads(await request.body()) != {"admin_key": self.admin_key}:
                return fault(401, "invalid_api_key", "The admin key is wrong.")
            logged_in = True
        told = {"authenticated": logged_in, "open": self.open, "admin_key_set": True, "version": "0.1.0"}
        answer = JSONResponse(
            told | {"csrf": self.csrf if logged_in else None, "expires_at": NOW + 43200 if logged_in else None}
        )
        if logged_in:
            answer.headers["set-cookie"] = "trunkline_admin=yes; HttpOnly; SameSite=Strict; Max-Age=43200"
        return answer

    def whole(self, name: str) -> Answer:
        async def items(request: Request) -> Response:
            kind = request.query_params.get("kind")
            rows = [row for row in getattr(self, name) if not kind or row.get("kind") == kind]
            return JSONResponse({"items": rows, "next": None})

        return items

    async def overview(self, _: Request) -> Response:
        hours = [NOW // 3600 * 3600 - 3600 * back for back in range(23, -1, -1)]
        wave = [int(30 + 22 * math.sin(index / 3)) for index in range(24)]
        last = {
            "at": hours,
            "calls": wave,
            "failed": [index % 7 == 3 for index in range(24)],
            "cost_microusd": [n * 1900 for n in wave],
        }
        today = {
            "calls": 812,
            "failed": 4,
            "prompt_tokens": 90210,
            "completion_tokens": 40122,
            "images": 12,
            "video_s": 24.0,
        }
        answer: dict[str, Any] = {
            "version": "0.1.0",
            "uptime_s": 81234.4,
            "calls_in_flight": len(self.calls),
            "last_24h": last,
        }
        answer |= {
            "replicas": [
                {"id": "a1", "started_at": NOW - 81234, "calls": 2},
                {"id": "b2", "started_at": NOW - 4000, "calls": 0},
            ]
        }
        answer |= {
            "jobs": {"queued": 0, "submitting": 0, "running": 1, "storing": 0},
            "today": today | {"cost_microusd": 812345},
        }
        answer |= {
            "media": {"count": 7, "bytes": 638638, "max_bytes": None},
            "keys": {"active": 2, "blocked": 1, "over_budget": 1},
        }
        return JSONResponse(answer | {"providers": {"up": 3, "degraded": 0, "down": 1, "unknown": 4}})

    async def end_call(self, request: Request) -> Response:
        self.calls = [call for call in self.calls if call["id"] != request.path_params["id"]]
        return JSONResponse({"id": request.path_params["id"], "cancelled": True}, 202)

    async def job(self, request: Request) -> Response:
        found = next(job for job in self.jobs if job["id"] == request.path_params["id"])
        steps = [{"at": NOW, "state": "queued", "text": ""}, {"at": NOW + 1, "state": "running", "text": "u-1"}]
        return JSONResponse(found | {"history": steps})

    async def cancel(self, request: Request) -> Response:
        found = next(job for job in self.jobs if job["id"] == request.path_params["id"])
        found |= {"state": "cancelled", "finished_at": NOW + 5}
        return JSONResponse(found)

    async def make_key(self, request: Request) -> Response:
        body = json.loads(await request.body())
        if body["name"] == "taken":
            return fault(400, "invalid_value", "name: there is a key named taken already.")
        made = key(len(self.keys) + 1, body["name"], models=body["models"])
        made["budget"] = body["budget"] and budget(body["budget"]["limit_microusd"], 0, body["budget"]["per"])
        self.keys.insert(0, made)
        return JSONResponse(made | {"key": "sk-tl-" + secrets.token_hex(16)}, 201)

    def find(self, request: Request) -> dict[str, Any]:
        return next(one for one in self.keys if one["id"] == request.path_params["id"])

    async def change_key(self, request: Request) -> Response:
        body = json.loads(await request.body())
        found = self.find(request)
        found |= {"name": body["name"], "rpm": body["rpm"]}
        return JSONResponse(found)

    async def act(self, request: Request) -> Response:
        found, act = self.find(request), request.path_params["act"]
        found["state"] = {"block": "blocked", "revoke": "revoked"}.get(act, "active")
        return JSONResponse(found | ({"key": "sk-tl-" + secrets.token_hex(16)} if act == "rotate" else {}))

    async def make_group(self, request: Request) -> Response:
        body = json.loads(await request.body())
        self.groups.append(
            {"id": f"grp_{len(self.groups) + 1}", "name": body["name"], "budget": None, "keys": 0, "created_at": NOW}
        )
        return JSONResponse(self.groups[-1], 201)

    async def usage(self, request: Request) -> Response:
        first, last = int(request.query_params["from"]), int(request.query_params["to"])
        bucket = {"minute": 60, "hour": 3600, "day": 86400}[request.query_params["bucket"]]
        at = list(range(first // bucket * bucket, last, bucket))
        names = {
            "model": ["local/text", "local/image", "local/video", "fast"],
            "key": ["anna", "build-bot"],
            "provider": ["local", "groq"],
        }
        series: list[dict[str, Any]] = []
        for order, name in enumerate(names[request.query_params["by"]]):
            calls = [max(0, int(9 / (order + 1) + 6 * math.sin(index / (2 + order)))) for index in range(len(at))]
            none = [0] * len(at)
            one = row(id=name, name=name, calls=calls, failed=none, images=none, video_s=none)
            one |= row(prompt_tokens=[n * 300 for n in calls], completion_tokens=[n * 140 for n in calls])
            series.append(one | {"cost_microusd": [n * 1400 * (order + 1) for n in calls]})
        measures = ("calls", "failed", "prompt_tokens", "completion_tokens", "images", "video_s", "cost_microusd")
        totals = {name: sum(sum(one[name]) for one in series) for name in measures}
        told = row(bucket_s=bucket, by=request.query_params["by"], at=at, series=series)
        return JSONResponse(told | {"totals": totals | {"estimated_calls": 12}})

    async def latency(self, _: Request) -> Response:
        at = [NOW // 3600 * 3600 - 3600 * back for back in range(23, -1, -1)]

        def quantiles(base: float) -> dict[str, list[float | None]]:
            shape = [None if 4 <= index <= 6 else 1 + 0.4 * math.sin(index / 2.2) for index in range(24)]
            return {
                name: [None if value is None else base * times * value for value in shape]
                for name, times in (("p50", 1.0), ("p95", 2.2), ("p99", 4.1))
            }

        spans = {"first_event_ms": quantiles(210), "token_gap_ms": quantiles(12), "duration_ms": quantiles(1800)}
        return JSONResponse({"bucket_s": 3600, "at": at} | spans)

    async def repairs(self, _: Request) -> Response:
        at = [NOW // 3600 * 3600 - 3600 * back for back in range(23, -1, -1)]
        rules = ["role_missing", "usage_zero", "data_prefix_missing"]
        series = [
            {"rule": rule, "counts": [(index * (order + 2)) % 9 for index in range(24)]}
            for order, rule in enumerate(rules)
        ]
        rows = [{"provider": "local", "rule": rule, "count": 90 - 20 * order} for order, rule in enumerate(rules)]
        return JSONResponse({"bucket_s": 3600, "at": at, "series": series, "by_provider": rows})

    async def providers(self, _: Request) -> Response:
        def provider(name: str, state: str, **more: Any) -> dict[str, Any]:
            health = row(state=state, success_rate=0.998, first_event_ms=310.0, last_error=None)
            credential = {"name": f"env:{name.upper()}_API_KEY", "set": True, "state": "ok", "until_at": None}
            models = [{"id": f"{name}/{kind}", "kind": kind} for kind in ("text", "image", "video")]
            told = row(
                name=name,
                enabled=True,
                why=None,
                docs="https://example.com/docs",
                base_url=f"https://{name}.example/v1",
            )
            told |= row(chat="openai_chat", image=None, video=None, credentials=[credential], health=health)
            return told | {"calls_1h": 120, "failed_1h": 0, "models": models} | more

        error = {"code": "upstream_timeout", "at": NOW - 90}
        down = {"state": "down", "success_rate": 0.2, "first_event_ms": None, "last_error": error}
        off: dict[str, Any] = {
            "enabled": False,
            "health": down | {"state": "unknown", "last_error": None},
            "calls_1h": 0,
        }
        off |= {"credentials": [], "why": "NAMELESS_API_KEY is not set"}
        rows = [provider("local", "up"), provider("alpha", "up"), provider("beta", "down", health=down, failed_1h=17)]
        return JSONResponse({"items": [*rows, provider("gamma", "unknown", **off)], "next": None})

    async def delete_media(self, request: Request) -> Response:
        ids = json.loads(await request.body())["ids"]
        self.media = [item for item in self.media if item["id"] not in ids]
        return JSONResponse({"deleted": len(ids)})

    async def inspect(self, request: Request) -> Response:
        return JSONResponse(inspection((await request.body()).decode("utf-8", "replace"), {}))

    def remember(self, request_id: str, model: str, events: list[str]) -> None:
        raw = "".join(f"data:{text}\n\n" for text in events if '"role"' not in text)
        told = row(request_id=request_id, model=model, provider="local", upstream_model=model.partition("/")[2])
        told |= row(kind="text", started_at=NOW, status=200, content_type="text/event-stream", truncated=False)
        told["ended"] = "completed"
        chunks = {index: [text] for index, text in enumerate(text for text in events if '"role"' not in text)}
        chunks[0] = [events[0], *chunks.get(0, [])]
        self.traces[request_id] = told | {"inspection": inspection(raw, chunks)}

    async def trace(self, request: Request) -> Response:
        found = self.traces.get(request.path_params["id"])
        return JSONResponse(found) if found else fault(404, "not_found", "Nothing was kept of this call.")


def inspection(text: str, chunks: dict[int, list[str]]) -> dict[str, Any]:
    """Rows of `data:` lines; the rule `role_missing` at the first, `blank_after_done` where `[DONE]` has one."""
    rows: list[dict[str, Any]] = []
    departures: list[dict[str, Any]] = []
    offset = 0
    for number, line in enumerate(text.split("\n"), 1):
        size = len(line.encode())
        if line.strip():
            faults = []
            if not rows:
                departures.append(
                    {
                        "line": number,
                        "offset": offset,
                        "length": 5,
                        "rule": "role_missing",
                        "message": "No chunk names the role.",
                    }
                )
                faults.append(len(departures) - 1)
            row = {
                "t_ms": 12.5 * len(rows) if chunks else None,
                "line": number,
                "offset": offset,
                "end": offset + size,
                "raw": line[:4096],
            }
            rows.append(
                row
                | {
                    "departures": faults,
                    "chunks": chunks.get(len(rows), []) if chunks else [line.removeprefix("data:").strip()],
                }
            )
        offset += size + 1
    outcomes = [
        {
            "mode": mode,
            "outcome": ("error", "ok", "degraded", "empty")[index % 4],
            "rules": ["role_missing"],
            "says": "missing role" if index % 4 == 0 else None,
        }
        for index, mode in enumerate(CLIENTS)
    ]
    told: dict[str, Any] = {
        "dialect": "openai_chat",
        "departures": departures,
        "text": "…",
        "reasoning": "",
        "tool_calls": [],
    }
    told |= {
        "finish_reason": "stop",
        "usage": None,
        "media": [],
        "events": len(rows),
        "verdict": 1 if departures else 0,
    }
    return told | {"rows": rows, "clients": outcomes}


def fault(status: int, code: str, message: str) -> Response:
    return JSONResponse(
        {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}, status
    )
