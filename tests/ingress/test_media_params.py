"""Every spelling and place of what clients ask of image and video models (wire.md section 11)."""

import json
from typing import Any

import pytest
from msgspec import Raw

from trunkline.core.chat import ChatRequest, Target
from trunkline.core.errors import GatewayError
from trunkline.core.media import MediaRequest
from trunkline.core.provider import ModelFacts, ModelKind, Provider
from trunkline.core.route import RouteTarget
from trunkline.ingress.media_params import read_asked, read_chat
from trunkline.ingress.prompt_flags import take_flags

RATIOS = ("1:1", "2:3", "3:2", "16:9", "9:16", "21:9")
BANANA = ModelFacts(kind="image", ratios=RATIOS, tiers=("1K", "2K", "4K"), max_inputs=3)
PRO_2K = ModelFacts(kind="image", tier="2K", ratios=RATIOS, tiers=("2K",), max_inputs=3)
SIZES = ModelFacts(
    kind="image", sizes=("1024x1024", "1536x1024", "1024x1536"), qualities=("low", "high"), formats=("png",)
)
FREE = ModelFacts(kind="image", sizes=("*x*",), size_step=16, size_max="3840x2160")
FILM = ModelFacts(kind="video", ratios=("16:9", "9:16"), tiers=("720p", "1080p", "4k"), seconds=(4, 6, 8), fps=(30, 60))
UNKNOWN = ModelFacts(kind="image")


def item(facts: ModelFacts) -> RouteTarget:
    return RouteTarget(
        Target(provider="p", model="m", base_url="", dialect="d", side="image"), Provider(), "none", facts
    )


def chat(prompt: Any = "a cat", facts: ModelFacts = BANANA, **members: Any) -> MediaRequest:
    body = {"model": "m", "messages": [{"role": "user", "content": prompt}], **members}
    fields = {name: Raw(json.dumps(value).encode()) for name, value in body.items()}
    return read_chat(ChatRequest("m", fields), facts.kind, item(facts))


def refused(prompt: Any = "a cat", facts: ModelFacts = BANANA, **members: Any) -> GatewayError:
    with pytest.raises(GatewayError) as error:
        chat(prompt, facts, **members)
    assert (error.value.status, error.value.code) == (400, "invalid_value")
    return error.value


@pytest.mark.parametrize(
    "members",
    [
        {"aspect_ratio": "16:9"},
        {"aspectRatio": "16x9"},
        {"ratio": "16：9"},
        {"aspect": " 16 / 9 "},
        {"size": "16:9"},
        {"--aspect_ratio": '"16:9"'},
        {"--aspect-ratio": "1920:1080"},
        {"image_config": {"aspect_ratio": "16:9"}},
        {"google": {"image_config": {"aspect_ratio": "16:9"}}},
        {"extra_body": {"google": {"image_config": {"aspect_ratio": "16:9"}}}},
        {"extra_body": {"google": {"imageConfig": {"aspectRatio": "16:9"}}}},
        {"extra_body": '{"google":{"image_config":{"aspect_ratio":"16:9"}}}'},
        {"extra_body": {"aspect_ratio": "16:9"}},
        {"extra_body": {"--aspect_ratio": "16:9"}},
        {"generationConfig": {"imageConfig": {"aspectRatio": "16:9"}}},
        {"parameters": {"aspectRatio": "landscape"}},
    ],
)
def test_a_ratio_in_every_place(members: dict[str, Any]) -> None:
    request = chat(**members)
    assert (request.ratio, request.prompt) == ("16:9", "a cat")


@pytest.mark.parametrize(
    "prompt",
    [
        "a cat --aspect_ratio 16:9",
        "--ar 16:9 a cat",
        "a --ratio=16:9 cat",
        "a cat —ar 16x9",
        "a cat -ar 16:9",
        'a cat --aspect "16:9"',
        "a cat {ratio:16:9}",
        "a cat --AR 16:9",
    ],
)
def test_a_ratio_as_a_flag_which_is_taken_out(prompt: str) -> None:
    request = chat(prompt)
    assert (request.ratio, request.prompt) == ("16:9", "a cat")


def test_flags_that_nobody_knows_or_with_bad_values_are_text() -> None:
    prompt = "print --help, use --n many, {x:1} and a -- b, --ar wide"
    request = chat(prompt)
    assert (request.prompt, request.ratio, request.n) == (prompt, None, 1)


def test_many_flags() -> None:
    request = chat("a cat --n 2 --seed 7 --output_format jpg --size 2K --no dogs, rain --quality high", BANANA)
    assert (request.n, request.seed, request.output_format, request.tier) == (2, 7, "jpeg", "2K")
    assert (request.negative_prompt, request.quality, request.prompt) == ("dogs, rain", "high", "a cat")


def test_flags_count_only_in_the_last_user_message() -> None:
    messages = [{"role": "user", "content": "a dog --ar 1:1"}, {"role": "user", "content": "a cat"}]
    fields = {"messages": Raw(json.dumps(messages).encode())}
    request = read_chat(ChatRequest("m", fields), "image", item(BANANA))
    assert (request.prompt, request.ratio) == ("a cat", None)


def test_the_more_explicit_place_counts() -> None:
    places: list[dict[str, Any]] = [
        {"aspect_ratio": "1:1"},
        {"--aspect_ratio": "2:3"},
        {"extra_body": {"google": {"image_config": {"aspect_ratio": "3:2"}}}},
    ]
    prompt = "a cat --ar 16:9"
    for at, expected in enumerate(("1:1", "2:3", "3:2", "16:9")):
        members = {name: value for place in places[at:] for name, value in place.items()}
        assert chat(prompt, **members).ratio == expected


@pytest.mark.parametrize(
    ("members", "names"),
    [
        ({"aspect_ratio": "1:1", "ratio": "16:9"}, ("aspect_ratio", "ratio")),
        ({"extra_body": {"aspect_ratio": "1:1"}, "google": {"image_config": {"aspect_ratio": "16:9"}}}, ("google",)),
        ({"size": "1024x1024", "aspect_ratio": "16:9"}, ("size", "aspect_ratio")),
    ],
)
def test_a_contradiction_on_one_level_is_refused(members: dict[str, Any], names: tuple[str, ...]) -> None:
    error = refused(**members)
    assert all(name in error.message for name in names)


def test_two_flags_that_contradict_each_other() -> None:
    error = refused("a cat --ar 1:1 --ratio 16:9")
    assert error.param == "--ratio"


def test_the_same_said_twice_is_no_contradiction() -> None:
    assert chat(aspect_ratio="16:9", ratio="16x9").ratio == "16:9"
    assert chat(size="1024x1024", aspect_ratio="1:1").ratio == "1:1"


@pytest.mark.parametrize(
    ("facts", "members", "param", "allowed"),
    [
        (BANANA, {"aspect_ratio": "7:5"}, "aspect_ratio", "16:9"),
        (BANANA, {"--aspect_ratio": "7:5"}, "--aspect_ratio", "16:9"),
        (BANANA, {"extra_body": {"google": {"image_config": {"aspect_ratio": "7:5"}}}},
         "extra_body.google.image_config.aspect_ratio", "16:9"),
        (BANANA, {"size": "8K"}, "size", "4K"),
        (PRO_2K, {"image_size": "4K"}, "image_size", "2K"),
        (PRO_2K, {"size": "4096x4096"}, "size", "2K"),
        (BANANA, {"size": "2000x500"}, "size", "16:9"),
        (SIZES, {"size": "512x512"}, "size", "1536x1024"),
        (SIZES, {"aspect_ratio": "21:9"}, "aspect_ratio", "1536x1024"),
        (SIZES, {"quality": "ultra"}, "quality", "low, high"),
        (FREE, {"size": "1000x1000"}, "size", "multiples of 16"),
        (FREE, {"size": "4096x4096"}, "size", "3840x2160"),
        (BANANA, {"output_format": "gif"}, "output_format", "webp"),
        (BANANA, {"n": 11}, "n", "1 to 10"),
        (BANANA, {"size": "large"}, "size", "1024x1024"),
        (BANANA, {"width": 512}, "width", "height"),
        (FILM, {"seconds": 5}, "seconds", "4, 6, 8"),
        (FILM, {"fps": 24}, "fps", "30, 60"),
        (FILM, {"resolution": "480p"}, "resolution", "720p"),
        (FILM, {"n": 5}, "n", "1 to 4"),
        (BANANA, {"seed": -1}, "seed", "0"),
    ],
)  # fmt: skip
def test_what_a_model_does_not_take_is_refused_by_name(
    facts: ModelFacts, members: dict[str, Any], param: str, allowed: str
) -> None:
    error = refused(facts=facts, **members)
    assert error.param == param
    assert allowed in error.message


def test_tiers_in_every_spelling() -> None:
    for members in ({"size": "2k"}, {"image_size": "2K"}, {"resolution": "2K"}, {"extra_body": {"image_size": "2K"}}):
        assert chat(**members).tier == "2K"
    assert chat(facts=ModelFacts(kind="image", tiers=("512", "1K")), size="0.5K").tier == "512"
    assert chat(facts=PRO_2K).tier == "2K"
    assert chat(facts=FILM, size="4K").tier == "4k"


def test_pixels_as_the_model_takes_them() -> None:
    assert (chat(size="2048x2048").ratio, chat(size="2048x2048").tier) == ("1:1", "2K")
    assert chat(size="1792x1024").ratio == "16:9"
    request = chat(facts=SIZES, size="1536x1024")
    assert (request.width, request.height, request.ratio) == (1536, 1024, None)
    request = chat(facts=SIZES, aspect_ratio="2:3")
    assert (request.width, request.height) == (1024, 1536)
    request = chat(facts=FREE, aspect_ratio="16:9")
    assert (request.width, request.height) == (1376, 768)
    request = chat(facts=FREE, width=640, height="480")
    assert (request.width, request.height) == (640, 480)
    assert chat(size="auto", facts=SIZES).width is None


def test_a_file_type_that_the_provider_cannot_give_is_left_to_us() -> None:
    request = chat(facts=SIZES, output_format="webp")
    assert (request.output_format, request.convert_to) == (None, "webp")
    request = chat(facts=SIZES, output_format="image/png")
    assert (request.output_format, request.convert_to) == ("png", None)
    assert chat(imageOutputOptions={"mimeType": "image/jpeg"}).output_format == "jpeg"


def test_films() -> None:
    request = chat(
        "a dog --duration 8s", FILM, fps="30", generate_audio=True, negative_prompt="cats", resolution="1080P"
    )
    assert (request.kind, request.seconds, request.fps, request.audio) == ("video", 8.0, 30, True)
    assert (request.negative_prompt, request.tier) == ("cats", "1080p")
    assert chat("x", FILM, seconds="6").seconds == 6.0
    assert chat("x", FILM, parameters={"durationSeconds": 4}).seconds == 4.0


def test_anything_passes_where_nothing_is_known() -> None:
    request = chat(facts=UNKNOWN, aspect_ratio="7:5", quality="odd")
    assert (request.ratio, request.quality) == ("7:5", "odd")
    assert chat(facts=UNKNOWN, size="3000x100").width == 3000


def part(url: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": "blue"}, {"type": "image_url", "image_url": {"url": url}}]


OWN = "http://g/v1/media/img_" + "0" * 24 + "?exp=1&sig=2"
PIXEL = "data:image/png;base64,iVBORw0KGgo="


@pytest.mark.parametrize(
    ("content", "members"),
    [
        (part("https://e.example/a"), {}),
        ("blue", {"image_url": "https://e.example/a"}),
        ("blue", {"images": ["https://e.example/a"]}),
        ("blue", {"image": {"url": "https://e.example/a"}}),
        ("blue", {"input_reference": {"image_url": {"url": "https://e.example/a"}}}),
        ("blue ![](https://e.example/a)", {}),
    ],
)
def test_pictures_in_every_place(content: Any, members: dict[str, Any]) -> None:
    request = chat(content, **members)
    assert [one.url for one in request.inputs] == ["https://e.example/a"]
    assert request.prompt == "blue"


def test_a_picture_link_in_the_prompt_is_taken_and_others_are_left() -> None:
    request = chat("make https://e.example/cat.PNG?x=1 like https://e.example/style please")
    assert [one.url for one in request.inputs] == ["https://e.example/cat.PNG?x=1"]
    assert request.prompt == "make like https://e.example/style please"
    assert [one.url for one in chat(f"blue {OWN}").inputs] == [OWN]


def test_data_urls_and_uploads() -> None:
    [one] = chat(part(PIXEL)).inputs
    assert (one.data[:4], one.mime_type, one.url) == (b"\x89PNG", "image/png", "")
    [one] = chat([{"type": "text", "text": "x"}, {"type": "image_file", "file_id": "file-1"}]).inputs
    assert one.file_id == "file-1"
    error = refused(part("data:image/png;base64,%%%"))
    assert error.param == "messages"


@pytest.mark.parametrize(
    "answer",
    [
        {"content": f"![image]({OWN})"},
        {"content": OWN},
        {"content": f'<img src="{OWN}" alt="image">'},
        {"content": "", "images": [{"type": "image_url", "image_url": {"url": OWN}}]},
        {"content": "", "media": {"outputs": [OWN]}},
    ],
)
def test_the_picture_of_the_last_answer_is_input_again(answer: dict[str, Any]) -> None:
    messages = [
        {"role": "user", "content": "a cat"},
        {"role": "assistant", **answer},
        {"role": "user", "content": "blue"},
    ]
    fields = {"messages": Raw(json.dumps(messages).encode())}
    request = read_chat(ChatRequest("m", fields), "image", item(BANANA))
    assert [(one.url, one.former) for one in request.inputs] == [(OWN, True)]
    assert read_chat(ChatRequest("m", fields), "image", item(ModelFacts(kind="image", max_inputs=0))).inputs == ()


def test_the_link_of_others_in_a_former_answer_is_no_input() -> None:
    messages = [{"role": "assistant", "content": "see https://e.example/a.png"}, {"role": "user", "content": "blue"}]
    fields = {"messages": Raw(json.dumps(messages).encode())}
    assert read_chat(ChatRequest("m", fields), "image", item(BANANA)).inputs == ()


def test_too_many_pictures() -> None:
    content = [{"type": "image_url", "image_url": {"url": f"https://e.example/{n}"}} for n in range(4)]
    assert "at most 3" in refused(content).message


def test_a_film_begins_with_the_picture() -> None:
    assert [one.role for one in chat(part("https://e.example/a"), FILM).inputs] == ["first_frame"]


def test_without_words_there_is_nothing_to_draw() -> None:
    with pytest.raises(GatewayError) as error:
        chat("  ")
    assert error.value.code == "missing_required_parameter"


def asked(kind: ModelKind = "image", facts: ModelFacts = SIZES, **members: Any) -> MediaRequest:
    fields = {name: Raw(json.dumps(value).encode()) for name, value in members.items()}
    return read_asked(fields, kind, item(facts), "m")


def test_an_endpoints_body() -> None:
    request = asked(prompt="a cat", n=2, size="1024x1024", moderation="low", user="u", response_format="url")
    assert (request.n, request.width, request.user, request.extra) == (2, 1024, "u", {"moderation": "low"})
    with pytest.raises(GatewayError, match="`prompt` is required"):
        asked(n=2)
    with pytest.raises(GatewayError, match="`prompt` must be a string"):
        asked(prompt=3)


def test_format_is_a_file_type_where_it_is_a_word_and_no_schema() -> None:
    assert chat(format="png").output_format == "png"
    assert chat(format={"type": "json_object"}).output_format is None


@pytest.mark.parametrize("prompt", ["一只猫 ——ar 16:9", "一只猫--ar 16:9", "一只猫 –ar 16：9"])
def test_flags_as_chinese_keyboards_write_them(prompt: str) -> None:
    text, [found] = take_flags(prompt, "image")
    assert (text, found.value) == ("一只猫", "16:9")


def test_words_with_dashes_are_no_flags() -> None:
    assert take_flags("a state-of--art 3 cat", "image") == ("a state-of--art 3 cat", ())
