"""Fake providers of pictures and films by their exact wires: DashScope, OpenRouter, fal and Replicate."""

import re
from typing import Any

from media_samples import picture
from media_wire import Answer, Asked, Handler, Shop, b64, drawn, said, sse, torn


def dashscope(self: Shop) -> dict[str, Handler]:
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


def openrouter(self: Shop) -> dict[str, Handler]:
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


def fal(self: Shop) -> dict[str, Handler]:
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


def replicate(self: Shop) -> dict[str, Handler]:
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
