"""Providers of pictures and films, each with its exact wire, on one real socket; words in a prompt say what goes wrong.

Addresses: `/openai/v1`, `/gemini/v1beta`, `/xai/v1`, `/bigmodel`, `/dashscope/api/v1`, `/openrouter/api/v1`, `/fal`,
`/replicate/v1`, and `/relay/v1` for pictures and films over chat; files are at `/files/NAME`.
Words: `#refused`, `#none`, `#429`, `#500`, `#cut`, `#html`, `#page`, `#bomb`, `#away`, `#dead`, `#failed`, `#silent`;
`#heavy`: a picture of 10 MB; `#torn`: one that breaks off after 3 MB; `#mended`: the same, until it is fetched again.
`python media_providers.py` serves on a free port and prints it; `GET /_seen` tells what was asked.
"""

import asyncio
import base64
import contextlib
import json
import re
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Self

from media_samples import bomb, film, heavy, picture

CREDENTIALS = ("authorization", "x-goog-api-key", "api-key")
BLOCK = 16 * 1024


class Asked(NamedTuple):
    """A request as it came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body) if self.body else {}

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")


class Answer(NamedTuple):
    """What to send; `cut`: break off after so many bytes."""

    status: int
    body: bytes
    kind: str = "application/json"
    headers: Mapping[str, str] = MappingProxyType({})
    cut: int | None = None


Handler = Callable[[Asked, re.Match[str]], Answer]


def said(value: Any, status: int = 200, **headers: str) -> Answer:
    return Answer(status, json.dumps(value, ensure_ascii=False).encode(), headers=headers)


def sse(events: list[dict[str, Any]], *, named: bool = False, done: bool = False) -> Answer:
    lines = [
        (f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event, ensure_ascii=False)}\n\n"
        for event in events
    ]
    return Answer(200, "".join(lines + (["data: [DONE]\n\n"] if done else [])).encode(), "text/event-stream")


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


class MediaProviders:
    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.tasks: dict[str, dict[str, Any]] = {}
        self.polls = 2
        """How often a task is asked for before it is done."""
        self.url = ""
        self.routes: list[tuple[str, re.Pattern[str], Handler]] = []
        for place in (openai, gemini, xai, bigmodel, dashscope, openrouter, fal, replicate, relay, files):
            for line, handler in place(self).items():
                method, path = line.split(" ", 1)
                self.routes.append((method, re.compile(path), handler))

    async def __aenter__(self) -> Self:
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 26)
        self.url = f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.server.close()

    def file(self, name: str, prompt: str = "") -> str:
        """The link of a file, or of what stands in its place."""
        words = {"#page": "page.html", "#bomb": "bomb.png", "#away": "away", "#dead": "dead", "#mended": "mended.png"}
        wrong = next((other for word, other in words.items() if word in prompt), "")
        return f"{self.url}/files/{wrong or name}"

    def begin(self, prompt: str) -> str:
        name = f"task-{len(self.tasks) + 1}"
        self.tasks[name] = {"prompt": prompt, "left": self.polls, "cancelled": False}
        return name

    def going(self, name: str) -> bool:
        """Whether a task still goes on, being asked once more."""
        task = self.tasks[name]
        task["left"] -= 1
        return bool(task["left"] >= 0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:])}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                method, path, _ = head[0].split(" ")
                answer = self.answer(Asked(method, path, headers, body))
                if not await send(writer, answer):
                    break
        writer.close()

    def answer(self, asked: Asked) -> Answer:
        if asked.path == "/_seen":
            return said([{"method": one.method, "path": one.path, "body": one.text} for one in self.asked])
        self.asked.append(asked)
        if not asked.path.startswith("/files/") and not any(name in asked.headers for name in CREDENTIALS):
            return said({"error": {"message": "no key", "code": "invalid_api_key"}}, 401)
        for method, pattern, handler in self.routes:
            if method == asked.method and (match := pattern.fullmatch(asked.path)):
                return trouble(asked) or handler(asked, match)
        return said({"error": {"message": f"no such place: {asked.path}", "code": "not_found"}}, 404)


async def send(writer: asyncio.StreamWriter, answer: Answer) -> bool:
    lines = {"content-type": answer.kind, "content-length": str(len(answer.body)), **answer.headers}
    head = f"HTTP/1.1 {answer.status} X\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    body = answer.body if answer.cut is None else answer.body[: answer.cut]
    writer.write(head.encode() + b"\r\n")
    for start in range(0, len(body), BLOCK):
        writer.write(body[start : start + BLOCK])
        await writer.drain()
    return answer.cut is None


def trouble(asked: Asked) -> Answer | None:
    """Statuses and pages that any provider may answer a submit with."""
    if asked.method != "POST":
        return None
    if "#429" in asked.text:
        return said({"error": {"message": "slow down", "type": "rate_limit_error"}}, 429, **{"retry-after": "7"})
    if "#500" in asked.text:
        return Answer(500, b"<html><body>Internal <b>error</b></body></html>", "text/html")
    if "#html" in asked.text:
        return Answer(200, b"<!doctype html><title>log in</title>", "text/html")
    return None


def drawn(asked: Asked, size: tuple[int, int]) -> bytes:
    """The picture that comes inline, or what comes in its place."""
    if "#bomb" in asked.text:
        return bomb()
    if "#page" in asked.text:
        return b"<!doctype html><p>log in</p>" * 20
    return heavy() if "#heavy" in asked.text or "#torn" in asked.text else picture("PNG", size)


def torn(asked: Asked, answer: Answer) -> Answer:
    return answer._replace(cut=3_000_000) if "#torn" in asked.text else answer


def openai(self: MediaProviders) -> dict[str, Handler]:
    def images(asked: Asked, match: re.Match[str]) -> Answer:
        what = "image_edit" if match[1] == "edits" else "image_generation"
        form = not asked.headers["content-type"].startswith("application/json")
        members = {} if form else asked.json
        if "#refused" in asked.text:
            error = {"message": "Your request was rejected by the safety system.", "code": "moderation_blocked"}
            return said({"error": {**error, "type": "image_generation_user_error", "param": None}}, 400)
        usage: dict[str, Any] = {"input_tokens": 9, "output_tokens": 272, "total_tokens": 281}
        usage |= {"input_tokens_details": {"text_tokens": 9, "image_tokens": 0}}
        if members.get("stream"):
            partial = {"type": f"{what}.partial_image", "b64_json": b64(picture()), "partial_image_index": 0}
            done = {"type": f"{what}.completed", "b64_json": b64(picture("PNG", (80, 60))), "usage": usage}
            answer = sse([partial, done], named=True)
            return answer._replace(cut=len(answer.body) - 200) if "#cut" in asked.text else answer
        data = [{"b64_json": b64(drawn(asked, (64 + n, 48)))} for n in range(members.get("n", 1))]
        body = {"created": 1, "data": [] if "#none" in asked.text else data, "usage": usage}
        answer = torn(asked, said(body))
        return answer._replace(cut=len(answer.body) // 3) if "#cut" in asked.text else answer

    def create(asked: Asked, _: re.Match[str]) -> Answer:
        return said({"id": self.begin(asked.text), "object": "video", "status": "queued", "progress": 0})

    def poll(_: Asked, match: re.Match[str]) -> Answer:
        name = match[1]
        if self.going(name):
            return said({"id": name, "object": "video", "status": "in_progress", "progress": 40, "error": None})
        if "#refused" in self.tasks[name]["prompt"]:
            error = {"code": "moderation_blocked", "message": "The film was blocked."}
            return said({"id": name, "object": "video", "status": "failed", "progress": 40, "error": error})
        return said({"id": name, "object": "video", "status": "completed", "progress": 100})

    def content(_: Asked, match: re.Match[str]) -> Answer:
        return Answer(200, picture("WEBP") if match[2] else film(noisy=True), "application/octet-stream")

    def delete(_: Asked, match: re.Match[str]) -> Answer:
        self.tasks[match[1]]["cancelled"] = True
        return said({"id": match[1], "object": "video.deleted", "deleted": True})

    return {
        "POST /openai/v1/images/(generations|edits)": images,
        "POST /openai/v1/videos": create,
        r"GET /openai/v1/videos/([\w-]+)": poll,
        r"GET /openai/v1/videos/([\w-]+)/content(\?variant=thumbnail)?": content,
        r"DELETE /openai/v1/videos/([\w-]+)": delete,
    }


def gemini(self: MediaProviders) -> dict[str, Handler]:
    def generate(asked: Asked, match: re.Match[str]) -> Answer:
        if "#refused" in asked.text:
            answer: dict[str, Any] = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}
        elif "#none" in asked.text:
            words = [{"text": "I would rather describe it."}]
            answer = {"candidates": [{"content": {"parts": words}, "finishReason": "NO_IMAGE"}]}
        else:
            inline = {"mimeType": "image/png", "data": b64(drawn(asked, (80, 60)))}
            thought: dict[str, Any] = {"thought": True, "inlineData": {"mimeType": "image/png", "data": b64(picture())}}
            parts: list[dict[str, Any]] = [
                thought,
                {"text": "Here it is."},
                {"inlineData": inline, "thoughtSignature": "xyz"},
            ]
            answer = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}
            answer["usageMetadata"] = {"promptTokenCount": 5, "candidatesTokenCount": 1290, "totalTokenCount": 1295}
        if not match[1]:
            return torn(asked, said(answer))
        full = sse([{"candidates": [{"content": {"parts": [{"text": "Wait. "}]}}]}, answer])
        return full._replace(cut=len(full.body) // 2) if "#cut" in asked.text else full

    def begin(asked: Asked, match: re.Match[str]) -> Answer:
        return said({"name": f"models/{match[1]}/operations/{self.begin(asked.text)}"})

    def operation(_: Asked, match: re.Match[str]) -> Answer:
        name, prompt = f"models/{match[1]}/operations/{match[2]}", self.tasks[match[2]]["prompt"]
        if self.going(match[2]):
            return said({"name": name})
        if "#failed" in prompt:
            return said({"name": name, "done": True, "error": {"code": 13, "message": "internal trouble"}})
        if "#refused" in prompt:
            held = {"raiMediaFilteredCount": 1, "raiMediaFilteredReasons": ["Faces of children were held back."]}
            return said({"name": name, "done": True, "response": {"generateVideoResponse": held}})
        sample = {"video": {"uri": self.file("film.mp4", prompt)}}
        return said({"name": name, "done": True, "response": {"generateVideoResponse": {"generatedSamples": [sample]}}})

    return {
        r"POST /gemini/v1beta/models/[\w.-]+:(?:generateContent|(streamGenerateContent)\?alt=sse)": generate,
        r"POST /gemini/v1beta/models/([\w.-]+):predictLongRunning": begin,
        r"GET /gemini/v1beta/models/([\w.-]+)/operations/([\w-]+)": operation,
    }


def xai(self: MediaProviders) -> dict[str, Handler]:
    def images(asked: Asked, _: re.Match[str]) -> Answer:
        if "#failed" in asked.text:
            return said({"code": "Some resource has been exhausted", "error": "no capacity"}, 503)
        blocked = {"respect_moderation": False} if "#refused" in asked.text else {}
        url = self.file("cat.png", asked.text)
        number = 0 if "#none" in asked.text else asked.json.get("n", 1)
        data = [{"url": url, "revised_prompt": "a cat", **blocked} for _ in range(number)]
        return said({"data": data, "usage": {"cost_in_usd_ticks": 200_000_000}})

    def begin(asked: Asked, _: re.Match[str]) -> Answer:
        return said({"request_id": self.begin(asked.text)})

    def poll(_: Asked, match: re.Match[str]) -> Answer:
        prompt = self.tasks[match[1]]["prompt"]
        if self.going(match[1]):
            return Answer(202, b"")
        if "#failed" in prompt:
            return said({"status": "failed", "error": {"code": "internal", "message": "it broke"}})
        video = {"url": self.file("film.mp4", prompt), "duration": 4, "respect_moderation": "#refused" not in prompt}
        return said({"video": video, "model": "m", "usage": {"cost_in_usd_ticks": 2_000_000_000}})

    return {
        "POST /xai/v1/images/(?:generations|edits)": images,
        "POST /xai/v1/videos/generations": begin,
        r"GET /xai/v1/videos/([\w-]+)": poll,
    }


def bigmodel(self: MediaProviders) -> dict[str, Handler]:
    def images(asked: Asked, _: re.Match[str]) -> Answer:
        if "#refused" in asked.text:
            error = {"code": "1301", "message": "系统检测到输入内容可能包含不安全或敏感内容"}
            return said({"error": error, "contentFilter": [{"level": 1, "role": "user"}]}, 400)
        data = [] if "#none" in asked.text else [{"url": self.file("cat.png", asked.text)}]
        return said(
            {"created": 1, "data": data, "content_filter": [{"role": "assistant", "level": 3}] if data else None}
        )

    def begin(asked: Asked, _: re.Match[str]) -> Answer:
        return said({"id": self.begin(asked.text), "model": "m", "request_id": "r", "task_status": "PROCESSING"})

    def poll(_: Asked, match: re.Match[str]) -> Answer:
        prompt = self.tasks[match[1]]["prompt"]
        if self.going(match[1]):
            return said({"model": "m", "request_id": "r", "task_status": "PROCESSING"})
        if "#silent" in prompt:
            return said({"model": "m", "request_id": "r", "task_status": "FAIL"})
        if "#refused" in prompt:
            error = {"code": "1301", "message": "敏感内容"}
            return said({"model": "m", "request_id": "r", "task_status": "FAIL", "error": error})
        cover = self.file("cover.jpg")
        done: dict[str, Any] = {"video_result": [{"url": self.file("film.mp4", prompt), "cover_image_url": cover}]}
        if "#picture" in prompt:
            done = {"image_result": [{"url": self.file("cat.png", prompt)}]}
        return said({"model": "m", "request_id": "r", "task_status": "SUCCESS", **done})

    return {
        "POST /bigmodel/images/generations": images,
        "POST /bigmodel/(?:async/images|videos)/generations": begin,
        r"GET /bigmodel/async-result/([\w-]+)": poll,
    }


def dashscope(self: MediaProviders) -> dict[str, Handler]:
    def at_once(asked: Asked, _: re.Match[str]) -> Answer:
        if "#refused" in asked.text:
            return said(
                {"code": "DataInspectionFailed", "message": "Input may be inappropriate", "request_id": "r"}, 400
            )
        content = [{"text": "sorry"}] if "#none" in asked.text else [{"image": self.file("cat.png", asked.text)}]
        choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": content}}
        return said({"output": {"choices": [choice]}, "usage": {"image_count": 1}, "request_id": "r"})

    def begin(asked: Asked, _: re.Match[str]) -> Answer:
        if asked.headers.get("x-dashscope-async") != "enable":
            return said({"code": "AccessDenied", "message": "does not support synchronous calls"}, 403)
        return said({"output": {"task_id": self.begin(asked.text), "task_status": "PENDING"}, "request_id": "r"})

    def poll(_: Asked, match: re.Match[str]) -> Answer:
        name, prompt = match[1], self.tasks[match[1]]["prompt"]
        if self.going(name):
            return said({"output": {"task_id": name, "task_status": "RUNNING"}, "request_id": "r"})
        output: dict[str, Any] = {"task_id": name, "task_status": "SUCCEEDED"}
        if "#refused" in prompt:
            output |= {
                "task_status": "FAILED",
                "code": "DataInspectionFailed",
                "message": "Output may be inappropriate",
            }
        elif "#none" in prompt:
            output["results"] = [{"code": "InternalError.Timeout", "message": "too slow"}]
        elif "#picture" in prompt:
            output["results"] = [
                {"url": self.file("cat.png", prompt)},
                {"code": "InternalError", "message": "not this"},
            ]
        else:
            output["video_url"] = self.file("film.mp4", prompt)
        return said({"output": output, "request_id": "r"})

    def cancel(_: Asked, match: re.Match[str]) -> Answer:
        self.tasks[match[1]]["cancelled"] = True
        return said({"request_id": "r"})

    return {
        "POST /dashscope/api/v1/services/aigc/multimodal-generation/generation": at_once,
        r"POST /dashscope/api/v1/services/aigc/[\w-]+/(?:image|video)-synthesis": begin,
        r"GET /dashscope/api/v1/tasks/([\w-]+)": poll,
        r"POST /dashscope/api/v1/tasks/([\w-]+)/cancel": cancel,
    }


def openrouter(self: MediaProviders) -> dict[str, Handler]:
    def images(asked: Asked, _: re.Match[str]) -> Answer:
        if "#refused" in asked.text:
            return said({"error": {"code": 403, "message": "flagged", "metadata": {"reasons": ["violence"]}}}, 403)
        if "#failed" in asked.text:
            return said({"error": {"code": 502, "message": "the provider failed"}})
        usage = {"prompt_tokens": 4, "completion_tokens": 0, "total_tokens": 4, "cost": 0.039}
        if asked.json.get("stream"):
            done = {"type": "image_generation.completed", "b64_json": b64(picture()), "usage": usage}
            return sse([done], done=True)
        odd = any(word in asked.text for word in ("#heavy", "#torn", "#page", "#bomb"))
        one = b64(drawn(asked, (80, 60)) if odd else picture("WEBP"))
        data = [{"b64_json": one, "media_type": "image/webp"}] * (
            0 if "#none" in asked.text else asked.json.get("n", 1)
        )
        return torn(asked, said({"created": 1, "data": data, "usage": usage}))

    def begin(asked: Asked, _: re.Match[str]) -> Answer:
        name = self.begin(asked.text)
        return said({"id": name, "polling_url": f"/api/v1/videos/{name}", "status": "pending"}, 202)

    def poll(_: Asked, match: re.Match[str]) -> Answer:
        name, prompt = match[1], self.tasks[match[1]]["prompt"]
        if self.going(name):
            return said({"id": name, "status": "in_progress"})
        if "#failed" in prompt:
            return said({"id": name, "status": "failed", "error": "the provider gave up"})
        usage = {"cost": 0.4}
        return said({"id": name, "status": "completed", "urls": [self.file("film.mp4", prompt)], "usage": usage})

    return {
        "POST /openrouter/api/v1/images": images,
        "POST /openrouter/api/v1/videos": begin,
        r"GET /openrouter/api/v1/videos/([\w-]+)": poll,
    }


def fal(self: MediaProviders) -> dict[str, Handler]:
    def begin(asked: Asked, match: re.Match[str]) -> Answer:
        if "#failed" in asked.text:
            return said(
                {"detail": [{"loc": ["body", "image_size"], "msg": "not this size", "type": "value_error"}]}, 422
            )
        name = self.begin(asked.text)
        place = f"{self.url}/fal/{'/'.join(match[1].split('/')[:2])}/requests/{name}"
        urls = {"status_url": f"{place}/status", "response_url": place, "cancel_url": f"{place}/cancel"}
        return said({"request_id": name, "status": "IN_QUEUE", "queue_position": 3, **urls})

    def status(_: Asked, match: re.Match[str]) -> Answer:
        if self.going(match[1]):
            if self.tasks[match[1]]["left"] > 0:
                return said({"status": "IN_QUEUE", "queue_position": 3, "request_id": match[1]}, 202)
            return said({"status": "IN_PROGRESS", "logs": [{"message": "step 3 of 4"}]}, 202)
        return said({"status": "COMPLETED", "request_id": match[1], "metrics": {"inference_time": 1.2}, "logs": []})

    def result(_: Asked, match: re.Match[str]) -> Answer:
        prompt = self.tasks[match[1]]["prompt"]
        if "#refused" in prompt:
            told = {"loc": ["body", "prompt"], "msg": "The content was flagged.", "type": "content_policy_violation"}
            return said({"detail": [told]}, 422)
        if "#film" in prompt:
            return said({"video": {"url": self.file("film.mp4", prompt), "content_type": "video/mp4"}})
        image = {"url": self.file("cat.png", prompt), "width": 64, "height": 48, "content_type": "image/png"}
        images = [] if "#none" in prompt else [image]
        return said({"images": images, "seed": 7, "has_nsfw_concepts": ["#unsafe" in prompt], "prompt": prompt})

    def cancel(_: Asked, match: re.Match[str]) -> Answer:
        self.tasks[match[1]]["cancelled"] = True
        return said({"status": "CANCELLATION_REQUESTED"}, 202)

    return {
        r"POST /fal/([\w./-]+)": begin,
        r"GET /fal/[\w.-]+/[\w.-]+/requests/([\w-]+)/status\?logs=1": status,
        r"GET /fal/[\w.-]+/[\w.-]+/requests/([\w-]+)": result,
        r"PUT /fal/[\w.-]+/[\w.-]+/requests/([\w-]+)/cancel": cancel,
    }


def replicate(self: MediaProviders) -> dict[str, Handler]:
    def begin(asked: Asked, _: re.Match[str]) -> Answer:
        name = self.begin(asked.text)
        return said({"id": name, "status": "starting", "output": None, "error": None, "logs": ""}, 201)

    def poll(_: Asked, match: re.Match[str]) -> Answer:
        name, prompt = match[1], self.tasks[match[1]]["prompt"]
        if self.going(name):
            logs = "Using seed: 7\n 25%|██▌       | 1/4\n 50%|█████     | 2/4\n"
            return said({"id": name, "status": "processing", "output": None, "error": None, "logs": logs})
        if "#refused" in prompt:
            error = "NSFW content detected. Try running it again, or try a different prompt."
            return said({"id": name, "status": "failed", "output": None, "error": error})
        output: Any = self.file("film.mp4", prompt) if "#film" in prompt else [self.file("cat.png", prompt)]
        output = [] if "#none" in prompt else output
        return said(
            {"id": name, "status": "succeeded", "output": output, "error": None, "metrics": {"predict_time": 1}}
        )

    def cancel(_: Asked, match: re.Match[str]) -> Answer:
        self.tasks[match[1]]["cancelled"] = True
        return said({"id": match[1], "status": "canceled"})

    return {
        r"POST /replicate/v1/(?:models/[\w.-]+/[\w.-]+/)?predictions": begin,
        r"GET /replicate/v1/predictions/([\w-]+)": poll,
        r"POST /replicate/v1/predictions/([\w-]+)/cancel": cancel,
    }


def relay(self: MediaProviders) -> dict[str, Handler]:
    """Relays that answer with pictures and films over chat; the model's name says in which shape."""

    def chat(asked: Asked, _: re.Match[str]) -> Answer:
        model, prompt = asked.json["model"], json.dumps(asked.json["messages"], ensure_ascii=False)
        image, clip, cover = self.file("cat.png", prompt), self.file("film.mp4", prompt), self.file("cover.jpg")
        data = f"data:image/png;base64,{b64(picture())}"
        texts = {
            "markdown": ["Here it is: ", f"![image]({image})"],
            "bare": [image],
            "doubled": ["Here. ", f"![image]({image})", image],
            "data_url": ["Look: ", f"![image]({data[:4000]}", f"{data[4000:]}) nice?"],
            "outputs": [image],
            "images": ["Done."],
            "words": ["Which cat do you mean?"],
            "several": [f"![a]({image})\n\n![b]({self.file('', '#page')})"],
            "film": [
                *"> VideoTask(id=7, prompt=a dog)\n", "[🤫 任务进度](", "🔥", "🔥", ")🎉🎉🎉\n\n",
                f"[^1]: [封面]({cover})\n\n", f"[^2]: [视频]({clip})\n\n",
                f"[视频]({clip})[^1][^2]\n\n", "[^1][^2]\n\n",
            ],
            "failed": ["> ID: `task_9`\n> Progress 10..\n", "> Generation Failed ❌\n> Reason: content policy\n"],
        }  # fmt: skip
        head = {"id": "", "object": "chat.completion.chunk", "created": 0, "model": " "}
        chunks = [{**head, "choices": [{"index": 0, "delta": {"content": text}}]} for text in texts[model]]
        if model == "images":
            given = {"images": [{"type": "image_url", "image_url": {"url": data}}]}
            chunks.append({**head, "choices": [{"index": 0, "delta": given}]})
        last: dict[str, Any] = {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        return sse([*chunks, last | ({"media": {"outputs": [image]}} if model == "outputs" else {})], done=True)

    return {"POST /relay/v1/chat/completions": chat}


def files(self: MediaProviders) -> dict[str, Handler]:
    def give(asked: Asked, match: re.Match[str]) -> Answer:
        if match[1] == "mended.png":
            fetched = sum(one.path == asked.path for one in self.asked)
            return Answer(200, heavy(), "image/png", cut=3_000_000 if fetched <= 2 else None)
        if match[1] == "away":
            return Answer(302, b"", headers={"location": "http://169.254.169.254/latest/meta-data/"})
        there = {
            "cat.png": (picture("PNG", (80, 60)), "image/png"),
            "cover.jpg": (picture("JPEG"), "image/jpeg"),
            "film.mp4": (film(noisy=True), "video/mp4"),
            "bomb.png": (bomb(), "image/png"),
            "page.html": (b"<!doctype html><p>log in</p>" * 20, "text/html"),
        }
        return Answer(200, *there[match[1]]) if match[1] in there else Answer(404, b"gone", "text/plain")

    return {r"GET /files/([\w.-]+)": give}


async def main() -> None:
    async with MediaProviders() as provider:
        sys.stdout.write(provider.url + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
