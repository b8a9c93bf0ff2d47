"""Fake providers of pictures and films by their exact wires: OpenAI, Gemini, xAI, BigModel, and relays over chat."""

import json
import re
from typing import Any

from media_samples import bomb, film, heavy, picture
from media_wire import Answer, Asked, Handler, Shop, b64, drawn, said, sse, torn


def openai(self: Shop) -> dict[str, Handler]:
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


def gemini(self: Shop) -> dict[str, Handler]:
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


def xai(self: Shop) -> dict[str, Handler]:
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


def bigmodel(self: Shop) -> dict[str, Handler]:
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


def relay(self: Shop) -> dict[str, Handler]:
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


def files(self: Shop) -> dict[str, Handler]:
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
