"""Nothing that a client asks for is dropped silently: each media dialect says it to its provider, or refuses it."""

import base64
from typing import Any

import pytest
from media_samples import picture
from msgspec.structs import replace

from trunkline.core.chat import Target
from trunkline.core.dialect import MediaDialect
from trunkline.core.errors import GatewayError
from trunkline.core.media import MediaInput, MediaRequest
from trunkline.dialects import MEDIA_DIALECTS
from trunkline.ingress.media_fit import hold_against

FILMS = {"openai_videos", "bigmodel_videos", "dashscope_videos", "openrouter_videos", "xai_videos", "veo"}
BOTH = {"fal_queue", "replicate_predictions"}
MASK = (MediaInput(data=picture()), MediaInput(data=picture("PNG", (8, 8)), role="mask"))
COMMON: dict[str, dict[str, Any]] = {
    "ratio": {"ratio": "16:9"},
    "tier": {"tier": "1080p"},
    "quality": {"quality": "high"},
    "seed": {"seed": 7},
    "negative": {"negative_prompt": "dogs"},
    "inputs": {"inputs": MASK[:1]},
}
PICTURES = {
    **COMMON,
    "tier": {"tier": "2K"},
    "pixels": {"width": 2048, "height": 1152},
    "background": {"background": "transparent"},
    "mask": {"inputs": MASK},
}
FILM = {**COMMON, "seconds": {"seconds": 5.0}, "fps": {"fps": 30}, "audio": {"audio": True}}
CASES = [
    *((name, "image", what) for name in MEDIA_DIALECTS if name not in FILMS for what in PICTURES),
    *((name, "video", what) for name in MEDIA_DIALECTS if name in FILMS | BOTH for what in FILM),
]


def sent(dialect: MediaDialect, request: MediaRequest, model: str = "m") -> tuple[str, bytes]:
    target = Target(provider="p", model=model, base_url="https://up.example/v1", dialect=dialect.name)
    built = dialect.submit(hold_against(request, dialect.lacks), target, "job_1")
    return built.path, built.body


@pytest.mark.parametrize(("name", "kind", "what"), CASES)
def test_it_reaches_the_provider_or_is_refused(name: str, kind: Any, what: str) -> None:
    dialect = MEDIA_DIALECTS[name]
    plain = MediaRequest(kind=kind, prompt="a cat", model="m")
    asked = replace(plain, **{**PICTURES, **(FILM if kind == "video" else {})}[what], spelled={what: f"--{what}"})
    beside = replace(plain, inputs=MASK[:1]) if what == "mask" else plain
    lacked = {"inputs", what} if what == "mask" else {what}
    if lacked & dialect.lacks:
        with pytest.raises(GatewayError) as caught:
            sent(dialect, asked)
        assert (caught.value.code, caught.value.status) == ("invalid_value", 400)
        assert caught.value.param in {what, f"--{what}", "image"}
    else:
        assert sent(dialect, asked) != sent(dialect, beside)


@pytest.mark.parametrize("model", ["m", "wan2.5-i2v"])
@pytest.mark.parametrize("name", sorted(FILMS | BOTH))
def test_a_last_frame_reaches_the_provider_or_is_refused(name: str, model: str) -> None:
    first, last = MediaInput(data=picture()), MediaInput(data=picture("PNG", (8, 8)), role="last_frame")
    one = MediaRequest(kind="video", prompt="a cat", model="m", inputs=(first,))
    two = replace(one, inputs=(last, first))
    if name == "openai_videos" or (name == "dashscope_videos" and model != "m"):
        with pytest.raises(GatewayError, match="2 pictures") as caught:
            sent(MEDIA_DIALECTS[name], two, model)
        assert (caught.value.code, caught.value.status, caught.value.param) == ("invalid_value", 400, "image")
    else:
        assert sent(MEDIA_DIALECTS[name], two, model) != sent(MEDIA_DIALECTS[name], one, model)


def test_what_comes_anyway_may_be_asked_for() -> None:
    asked = MediaRequest(kind="image", prompt="a cat", model="m", quality="standard", background="opaque")
    kept = hold_against(asked, MEDIA_DIALECTS["gemini_images"].lacks)
    assert (kept.quality, kept.background) == (None, None)


def test_former_pictures_are_left_out_where_none_is_taken() -> None:
    former = MediaInput(data=base64.b64decode("iVBORw0KGgo="), former=True)
    asked = MediaRequest(kind="image", prompt="a cat", model="m", inputs=(former,))
    assert hold_against(asked, {"inputs"}).inputs == ()
    with pytest.raises(GatewayError, match="takes no pictures"):
        hold_against(replace(asked, inputs=(replace(former, former=False),)), {"inputs"})
