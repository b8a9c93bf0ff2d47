"""How the dialects for pictures and films read what is not in the usual shape."""

import base64
import json
import random
from typing import Any

import pytest
from damage import damage, pieces

from trunkline.core.chat import Target
from trunkline.core.dialect import Ready, Refused, Submitted, Working
from trunkline.dialects import MEDIA_DIALECTS

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
DATA = "data:image/png;base64," + base64.b64encode(PNG).decode()


def submitted(dialect: str, body: Any, status: int = 200) -> Any:
    return MEDIA_DIALECTS[dialect].submitted(status, body if isinstance(body, bytes) else json.dumps(body).encode())


def polled(dialect: str, body: Any, status: int = 200, task: str = "t1") -> Any:
    progress = MEDIA_DIALECTS[dialect].progress
    assert progress is not None
    return progress(task, status, body if isinstance(body, bytes) else json.dumps(body).encode())


def test_an_error_in_an_array_of_one() -> None:
    body = [{"error": {"code": 400, "message": "imageSize is not supported", "status": "INVALID_ARGUMENT"}}]
    for status in (400, 200):
        refused = submitted("gemini_images", body, status)
        assert isinstance(refused, Refused)
        assert (refused.error.status, refused.error.message) == (400, "imageSize is not supported")


def test_a_stream_that_comes_as_one_array() -> None:
    part = {"inline_data": {"mime_type": "image/webp", "data": base64.b64encode(PNG).decode()}}
    events = [
        {"candidates": [{"content": {"parts": [{"text": "Look"}]}}]},
        {"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]},
    ]
    ready = submitted("gemini_images", events)
    assert isinstance(ready, Ready)
    assert (ready.text, ready.media[0].mime_type) == ("Look", "image/webp")


def test_usage_of_pictures_counts_what_was_drawn() -> None:
    part = {"inlineData": {"mimeType": "image/png", "data": base64.b64encode(PNG).decode()}}
    details = [{"modality": "IMAGE", "tokenCount": 1120}]
    usage = {
        "promptTokenCount": 7,
        "candidatesTokenCount": 1130,
        "thoughtsTokenCount": 50,
        "candidatesTokensDetails": details,
    }
    ready = submitted("gemini_images", {"candidates": [{"content": {"parts": [part]}}], "usageMetadata": usage})
    assert ready.usage is not None
    assert (ready.usage.prompt_tokens, ready.usage.completion_tokens) == (7, 1180)
    assert (ready.usage.reasoning_tokens, ready.usage.image_output_tokens) == (50, 1120)


def test_an_empty_202_is_work() -> None:
    assert polled("xai_videos", b"", 202) == Working()
    assert polled("xai_videos", b" \n", 202) == Working()
    assert isinstance(polled("xai_videos", b"", 200), Refused)
    assert polled("xai_videos", {"status": "pending", "progress": 31}) == Working(31.0)
    assert polled("xai_videos", {"status": "expired"}).error.message == "the task t1 ended as expired"


def test_relays_of_openai_videos() -> None:
    assert submitted("openai_videos", {"task_id": "t9", "object": "task", "status": "submitted"}) == Submitted("t9")
    assert polled("openai_videos", {"status": "processing", "progress": "35%"}) == Working(35.0)
    assert polled("openai_videos", {"status": "unknown"}) == Working()
    link = polled("openai_videos", {"status": "completed", "metadata": {"url": "https://x.example/f.mp4"}})
    assert link.media[0].url == "https://x.example/f.mp4"
    own = polled("openai_videos", {"status": "completed"})
    assert (own.media[0].url, own.media[0].authorized) == ("/videos/t1/content", True)
    assert own.media[0].cover_url == "/videos/t1/content?variant=thumbnail"
    lost = polled("openai_videos", {"status": "failed", "error": None})
    assert (lost.error.code, lost.error.message) == ("upstream_error", "the film t1 ended as failed")


def test_no_answer_leads_the_key_to_another_host() -> None:
    dialect = MEDIA_DIALECTS["fal_queue"]
    target = Target("fal", "a/b", "https://queue.fal.run", "fal_queue")
    begun = submitted(
        "fal_queue",
        {"request_id": "r", "status_url": "https://evil.example/x/status", "response_url": "http://169.254.169.254/y"},
    )
    assert dialect.poll is not None
    assert dialect.poll(begun.task, target).path == "/x/status?logs=1"
    below = Target("fal", "a/b", "https://h.example/fal", "fal_queue")
    begun = submitted(
        "fal_queue",
        {
            "request_id": "r",
            "status_url": "https://h.example/fal/a/b/requests/r/status",
            "response_url": "https://h.example/fal/a/b/requests/r",
        },
    )
    assert dialect.poll(begun.task, below).path == "/a/b/requests/r/status?logs=1"


def test_a_queue_says_how_many_wait_before() -> None:
    begun = submitted("fal_queue", {"status_url": "https://q/s", "response_url": "https://q/r", "request_id": "r"})
    assert (
        polled("fal_queue", {"status": "IN_QUEUE", "queue_position": 3}, 202, begun.task).text == "queued, 3 before you"
    )
    assert (
        polled("fal_queue", {"status": "IN_PROGRESS", "logs": [{"message": "step 2"}]}, 202, begun.task).text
        == "step 2"
    )
    done = polled("fal_queue", {"status": "COMPLETED"}, 200, begun.task)
    assert (done.poll_after_s, done.task != begun.task) == (0.0, True)
    assert dialect_poll(done.task) == "/r"


def dialect_poll(task: str) -> str:
    poll = MEDIA_DIALECTS["fal_queue"].poll
    assert poll is not None
    return poll(task, Target("fal", "a/b", "https://q", "fal_queue")).path


SAMPLES: list[Any] = [
    {"created": 1, "data": [{"b64_json": DATA[22:]}, {"url": "/files/x.png"}], "usage": {"input_tokens": 1}},
    {
        "candidates": [
            {
                "content": {"parts": [{"inlineData": {"mimeType": "image/png", "data": DATA[22:]}}]},
                "finishReason": "STOP",
            }
        ]
    },
    {"promptFeedback": {"blockReason": "SAFETY"}},
    {"id": "t1", "status": "completed", "progress": 100, "output": {"url": "https://x.example/f.mp4"}, "error": None},
    {
        "task_status": "SUCCESS",
        "video_result": [{"url": "https://x.example/f.mp4", "cover_image_url": "https://x.example/c.jpg"}],
    },
    {
        "output": {
            "task_id": "t",
            "task_status": "SUCCEEDED",
            "results": [{"url": "https://x.example/a.png"}, {"code": "E"}],
        }
    },
    {
        "name": "models/v/operations/1",
        "done": True,
        "response": {"generateVideoResponse": {"generatedSamples": [{"video": {"uri": "https://g.example/f"}}]}},
    },
    {"video": {"url": "https://x.example/f.mp4", "respect_moderation": True}, "usage": {"cost_in_usd_ticks": 5}},
    {
        "status": "COMPLETED",
        "images": [{"url": "https://x.example/a.png"}],
        "has_nsfw_concepts": [False],
        "detail": [{"type": "x"}],
    },
    {"id": "p", "status": "succeeded", "output": ["https://x.example/a.webp"], "logs": "10%|"},
    {"type": "image_generation.completed", "b64_json": DATA[22:], "usage": {"total_tokens": 3}},
    {"error": {"code": "1301", "message": "no"}},
]


@pytest.mark.parametrize("name", MEDIA_DIALECTS)
def test_no_answer_raises(name: str) -> None:
    dialect, chance = MEDIA_DIALECTS[name], random.Random(11)
    for number in range(400):
        body = json.dumps(SAMPLES[number % len(SAMPLES)]).encode()
        body = damage(body, chance) if number >= len(SAMPLES) else body
        status = chance.choice((200, 200, 202, 400, 403, 429, 500))
        submitted_ = dialect.submitted(status, body)
        assert isinstance(submitted_, Submitted | Ready | Refused)
        assert not isinstance(submitted_, Ready) or submitted_.media
        assert not isinstance(submitted_, Submitted) or submitted_.task
        if dialect.progress is not None:
            polled_ = dialect.progress(chance.choice(("t1", "[", "[true,1]", "null")), status, body)
            assert isinstance(polled_, Working | Ready | Refused)
            assert not isinstance(polled_, Ready) or polled_.media
        if dialect.stream is not None:
            decoder = dialect.stream()
            said = [one for piece in pieces(b"data: " + body + b"\n\n", chance) for one in decoder.feed(piece)]
            said += decoder.close()
            assert sum(isinstance(one, Ready | Refused) for one in said) == 1


@pytest.mark.parametrize("name", ["openai_images", "openrouter_images", "gemini_images"])
def test_streams_may_be_cut_anywhere(name: str) -> None:
    stream = MEDIA_DIALECTS[name].stream
    assert stream is not None
    partial = {"type": "image_generation.partial_image", "b64_json": DATA[22:], "partial_image_index": 0}
    events: list[Any] = [partial, SAMPLES[10]]
    if name == "gemini_images":
        thought = {
            "candidates": [
                {"content": {"parts": [{"thought": True, **SAMPLES[1]["candidates"][0]["content"]["parts"][0]}]}}
            ]
        }
        events = [thought, SAMPLES[1]]
    body = "".join(f"event: x\ndata: {json.dumps(event)}\n\n" for event in events).encode()
    wholes = []
    for cuts in (
        [body],
        [body[at : at + 1] for at in range(len(body))],
        [body[at : at + 7] for at in range(0, len(body), 7)],
    ):
        decoder = stream()
        wholes.append([*(one for piece in cuts for one in decoder.feed(piece)), *decoder.close()])
    assert wholes[0] == wholes[1] == wholes[2]
    assert [type(one) for one in wholes[0]] == [Working, Ready]
    assert wholes[0][0].partial.url == DATA  # type: ignore[union-attr]
