"""What the dialects for pictures and films send."""

import base64
import json
from typing import Any

import pytest

from trunkline.core.chat import Target
from trunkline.core.errors import GatewayError
from trunkline.core.media import MediaInput, MediaRequest
from trunkline.dialects import MEDIA_DIALECTS

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
JPEG = b"\xff\xd8\xff" + bytes(20)
DATA = "data:image/png;base64," + base64.b64encode(PNG).decode()


def image(**asked: Any) -> MediaRequest:
    return MediaRequest(**({"kind": "image", "prompt": "a cat", "model": "m"} | asked))


def film(**asked: Any) -> MediaRequest:
    return MediaRequest(**({"kind": "video", "prompt": "a dog", "model": "m"} | asked))


def sent(dialect: str, request: MediaRequest, model: str = "m-1", **target: Any) -> tuple[str, Any]:
    built = MEDIA_DIALECTS[dialect].submit(
        request, Target("home", model, "https://h.example/v1", dialect, **target), "j1"
    )
    assert built.method == "POST"
    return built.path, json.loads(built.body)


PICTURE = MediaInput(data=PNG)
LAST = MediaInput(data=JPEG, role="last_frame")
LINK = MediaInput(url="https://x.example/a.jpg")


@pytest.mark.parametrize(
    ("dialect", "request_", "path", "body"),
    [
        (
            "openai_images",
            image(n=2, width=1536, height=1024, quality="high", output_format="webp", background="opaque", user="u"),
            "/images/generations",
            {
                "model": "m-1",
                "prompt": "a cat",
                "n": 2,
                "size": "1536x1024",
                "quality": "high",
                "output_format": "webp",
                "background": "opaque",
                "user": "u",
            },
        ),
        (
            "openai_images",
            image(ratio="16:9", tier="2K"),
            "/images/generations",
            {"model": "m-1", "prompt": "a cat", "size": "2752x1536"},
        ),
        (
            "openai_images",
            image(extra={"style": "vivid", "prompt": "no"}, negative_prompt="dogs"),
            "/images/generations",
            {"model": "m-1", "prompt": "a cat\n\nAvoid: dogs", "style": "vivid"},
        ),
        (
            "openai_images",
            image(partial_images=2),
            "/images/generations",
            {"model": "m-1", "prompt": "a cat", "stream": True, "partial_images": 2},
        ),
        (
            "gemini_images",
            image(ratio="16:9", tier="2K", seed=7, inputs=(PICTURE,)),
            "/models/m-1:generateContent",
            {
                "contents": [
                    {
                        "role": "user",
                        "parts": [{"text": "a cat"}, {"inlineData": {"mimeType": "image/png", "data": DATA[22:]}}],
                    }
                ],
                "generationConfig": {
                    "responseModalities": ["TEXT", "IMAGE"],
                    "imageConfig": {"aspectRatio": "16:9", "imageSize": "2K"},
                    "seed": 7,
                },
            },
        ),
        (
            "gemini_images",
            image(width=1920, height=1080),
            "/models/m-1:generateContent",
            {
                "contents": [{"role": "user", "parts": [{"text": "a cat"}]}],
                "generationConfig": {
                    "responseModalities": ["TEXT", "IMAGE"],
                    "imageConfig": {"aspectRatio": "16:9", "imageSize": "1K"},
                },
            },
        ),
        (
            "xai_images",
            image(ratio="2:1", tier="2K", n=3),
            "/images/generations",
            {"model": "m-1", "prompt": "a cat", "n": 3, "aspect_ratio": "2:1", "resolution": "2k"},
        ),
        (
            "xai_images",
            image(inputs=(LINK,)),
            "/images/edits",
            {"model": "m-1", "prompt": "a cat", "image": {"url": "https://x.example/a.jpg", "type": "image_url"}},
        ),
        (
            "bigmodel_images",
            image(width=1344, height=768, quality="hd"),
            "/images/generations",
            {"model": "m-1", "prompt": "a cat", "size": "1344x768", "quality": "hd", "request_id": "j1"},
        ),
        (
            "openrouter_images",
            image(ratio="3:2", tier="1K", inputs=(PICTURE,)),
            "/images",
            {
                "model": "m-1",
                "prompt": "a cat",
                "aspect_ratio": "3:2",
                "resolution": "1K",
                "input_references": [{"type": "image_url", "image_url": {"url": DATA}}],
            },
        ),
        (
            "openai_videos",
            film(seconds=8.0, ratio="9:16", tier="720p"),
            "/videos",
            {"model": "m-1", "prompt": "a dog", "seconds": "8", "size": "720x1280"},
        ),
        (
            "openai_videos",
            film(inputs=(LINK,)),
            "/videos",
            {"model": "m-1", "prompt": "a dog", "input_reference": {"image_url": "https://x.example/a.jpg"}},
        ),
        (
            "veo",
            film(seconds=8.0, ratio="9:16", tier="1080p", negative_prompt="cats", seed=3, inputs=(PICTURE, LAST)),
            "/models/m-1:predictLongRunning",
            {
                "instances": [
                    {
                        "prompt": "a dog",
                        "image": {"bytesBase64Encoded": DATA[22:], "mimeType": "image/png"},
                        "lastFrame": {"bytesBase64Encoded": base64.b64encode(JPEG).decode(), "mimeType": "image/jpeg"},
                    }
                ],
                "parameters": {
                    "aspectRatio": "9:16",
                    "resolution": "1080p",
                    "durationSeconds": 8,
                    "negativePrompt": "cats",
                    "seed": 3,
                },
            },
        ),
        (
            "xai_videos",
            film(seconds=6.0, width=1280, height=720),
            "/videos/generations",
            {"model": "m-1", "prompt": "a dog", "duration": 6, "aspect_ratio": "16:9", "resolution": "720p"},
        ),
        (
            "bigmodel_videos",
            film(width=1280, height=720, seconds=5.0, fps=30, audio=True, quality="speed", inputs=(LINK, LAST)),
            "/videos/generations",
            {
                "model": "m-1",
                "prompt": "a dog",
                "image_url": ["https://x.example/a.jpg", "data:image/jpeg;base64," + base64.b64encode(JPEG).decode()],
                "size": "1280x720",
                "quality": "speed",
                "with_audio": True,
                "duration": 5,
                "fps": 30,
                "request_id": "j1",
            },
        ),
        (
            "bigmodel_videos",
            film(ratio="1:1", extra={"style": "anime"}),
            "/videos/generations",
            {"model": "m-1", "prompt": "a dog", "aspect_ratio": "1:1", "style": "anime", "request_id": "j1"},
        ),
        (
            "openrouter_videos",
            film(ratio="16:9", tier="1080p", audio=False, inputs=(PICTURE,)),
            "/videos",
            {
                "model": "m-1",
                "prompt": "a dog",
                "aspect_ratio": "16:9",
                "resolution": "1080p",
                "generate_audio": False,
                "frame_images": [{"type": "image_url", "image_url": {"url": DATA}, "frame_type": "first_frame"}],
            },
        ),
    ],
)
def test_what_is_sent(dialect: str, request_: MediaRequest, path: str, body: Any) -> None:
    assert sent(dialect, request_) == (path, body)


@pytest.mark.parametrize(
    ("dialect", "model", "request_", "path", "body"),
    [
        (
            "dashscope_images",
            "qwen-image-2.0",
            image(width=1024, height=768, n=2, inputs=(LINK,)),
            "/services/aigc/multimodal-generation/generation",
            {
                "model": "qwen-image-2.0",
                "input": {
                    "messages": [{"role": "user", "content": [{"image": "https://x.example/a.jpg"}, {"text": "a cat"}]}]
                },
                "parameters": {"size": "1024*768", "n": 2},
            },
        ),
        (
            "dashscope_images",
            "wanx2.1-t2i-turbo",
            image(negative_prompt="dogs"),
            "/services/aigc/text2image/image-synthesis",
            {"model": "wanx2.1-t2i-turbo", "input": {"prompt": "a cat", "negative_prompt": "dogs"}, "parameters": {}},
        ),
        (
            "dashscope_videos",
            "wan2.5-t2v",
            film(ratio="16:9", tier="720p", seconds=5.0),
            "/services/aigc/video-generation/video-synthesis",
            {"model": "wan2.5-t2v", "input": {"prompt": "a dog"}, "parameters": {"size": "1280*720", "duration": 5}},
        ),
        (
            "dashscope_videos",
            "wan2.6-i2v",
            film(tier="720p", inputs=(LINK,)),
            "/services/aigc/video-generation/video-synthesis",
            {
                "model": "wan2.6-i2v",
                "input": {"prompt": "a dog", "img_url": "https://x.example/a.jpg"},
                "parameters": {"resolution": "720P"},
            },
        ),
        (
            "dashscope_videos",
            "wan2.7-i2v",
            film(ratio="9:16", inputs=(LINK, LAST)),
            "/services/aigc/video-generation/video-synthesis",
            {
                "model": "wan2.7-i2v",
                "input": {
                    "prompt": "a dog",
                    "media": [
                        {"type": "first_frame", "url": "https://x.example/a.jpg"},
                        {"type": "last_frame", "url": "data:image/jpeg;base64," + base64.b64encode(JPEG).decode()},
                    ],
                },
                "parameters": {"ratio": "9:16"},
            },
        ),
        (
            "fal_queue",
            "fal-ai/flux/dev",
            image(width=640, height=480, n=2, extra={"guidance_scale": 3}),
            "/fal-ai/flux/dev",
            {"prompt": "a cat", "image_size": {"width": 640, "height": 480}, "num_images": 2, "guidance_scale": 3},
        ),
        (
            "fal_queue",
            "fal-ai/nano-banana/edit",
            image(ratio="1:1", inputs=(LINK,)),
            "/fal-ai/nano-banana/edit",
            {"prompt": "a cat", "aspect_ratio": "1:1", "image_urls": ["https://x.example/a.jpg"]},
        ),
        (
            "replicate_predictions",
            "a/b",
            image(ratio="1:1", output_format="jpeg", n=2),
            "/models/a/b/predictions",
            {"input": {"prompt": "a cat", "aspect_ratio": "1:1", "output_format": "jpg", "num_outputs": 2}},
        ),
        (
            "replicate_predictions",
            "a/b:c0ffee",
            film(seconds=5.0, inputs=(LINK,)),
            "/predictions",
            {"version": "c0ffee", "input": {"prompt": "a dog", "duration": 5, "image": "https://x.example/a.jpg"}},
        ),
    ],
)
def test_what_is_sent_for_this_model(dialect: str, model: str, request_: MediaRequest, path: str, body: Any) -> None:
    assert sent(dialect, request_, model) == (path, body)


def test_the_providers_own_words_apply() -> None:
    target: dict[str, Any] = {"path": "/draw", "rename": {"prompt": "text", "size": "resolution"}, "drop": ("user",)}
    path, body = sent("openai_images", image(width=64, height=64, user="u"), **target)
    assert (path, body) == ("/draw", {"model": "m-1", "text": "a cat", "resolution": "64x64"})


def test_a_start_picture_of_a_film_goes_as_a_file() -> None:
    target = Target("home", "sora-2", "https://h.example/v1", "openai_videos")
    built = MEDIA_DIALECTS["openai_videos"].submit(film(inputs=(PICTURE,), seconds=4.0), target, "j1")
    kind = dict(built.headers)["content-type"]
    boundary = kind.partition("boundary=")[2].encode()
    assert built.body.startswith(b"--" + boundary + b"\r\n")
    assert built.body.endswith(b"\r\n--" + boundary + b"--\r\n")
    assert b'name="input_reference"; filename="1.png"\r\ncontent-type: image/png\r\n\r\n' + PNG in built.body
    assert b'name="seconds"\r\n\r\n4\r\n' in built.body
    assert dict(built.headers)["idempotency-key"] == "j1"


def test_pictures_that_must_be_data_are_asked_for() -> None:
    for dialect, request in (("veo", film(inputs=(LINK,))), ("openai_images", image(inputs=(LINK,)))):
        assert not MEDIA_DIALECTS[dialect].takes_links
        with pytest.raises(GatewayError) as caught:
            sent(dialect, request)
        assert (caught.value.status, caught.value.param) == (400, "image")
