"""The table of wire.md section 11: every word of a parameter in every place, and what comes of it."""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec import Raw

from trunkline.config.load import build
from trunkline.core.chat import ChatRequest, Target
from trunkline.core.errors import GatewayError
from trunkline.core.media import MediaRequest
from trunkline.core.provider import ModelFacts, Provider
from trunkline.core.route import RouteTarget
from trunkline.ingress.media_params import read_chat
from trunkline.ingress.media_pictures import MEMBERS
from trunkline.ingress.media_words import FLAGS, WORDS, plain
from trunkline.ingress.side_request import SIDES
from trunkline.routing.table import RoutingTable

RATIOS = ("1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9")
BANANA = ModelFacts(kind="image", ratios=RATIOS, tiers=("512", "1K", "2K", "4K"), max_inputs=14)
NANO = ModelFacts(kind="image", ratios=RATIOS, tiers=("1K",), max_inputs=3)
GPT = ModelFacts(
    kind="image",
    sizes=("1024x1024", "1536x1024", "1024x1536"),
    ratios=("1:1", "3:2", "2:3"),
    qualities=("low", "medium", "high"),
    formats=("png", "jpeg", "webp"),
)
FREE = ModelFacts(kind="image", sizes=("*x*",), size_step=16, size_max="3840x2160")
COG = ModelFacts(
    kind="video",
    sizes=("1280x720", "720x1280", "1024x1024", "1920x1080", "1080x1920", "2048x1080", "3840x2160"),
    qualities=("speed", "quality"),
    seconds=(5, 10),
    fps=(30, 60),
    max_inputs=2,
)
VEO = ModelFacts(kind="video", ratios=("16:9", "9:16"), tiers=("720p", "1080p", "4k"), seconds=(4, 6, 8))
ANY_FILM = ModelFacts(kind="video")


def item(facts: ModelFacts, suffix: str = "") -> RouteTarget:
    target = Target(provider="p", model="m", base_url="", dialect="d", side="image")
    return RouteTarget(target, Provider(), "none", facts, suffix=suffix)


def chat(prompt: Any = "a cat", facts: ModelFacts = BANANA, suffix: str = "", **members: Any) -> MediaRequest:
    body = {"model": "m", "messages": [{"role": "user", "content": prompt}], **members}
    fields = {name: Raw(json.dumps(value).encode()) for name, value in body.items()}
    return read_chat(ChatRequest("m", fields), facts.kind, item(facts, suffix))


def refused(prompt: Any = "a cat", facts: ModelFacts = BANANA, **members: Any) -> GatewayError:
    with pytest.raises(GatewayError) as error:
        chat(prompt, facts, **members)
    assert (error.value.status, error.value.code) == (400, "invalid_value")
    return error.value


class Row(NamedTuple):
    """What a request then says; the words of the body, those inside objects, flags, suffixes of the model's name."""

    facts: ModelFacts
    expected: dict[str, Any]
    body: dict[str, Any]
    nested: tuple[dict[str, Any], ...]
    flags: tuple[str, ...]
    suffixes: tuple[str, ...]


TABLE: dict[str, Row] = {
    "aspect ratio": Row(
        BANANA,
        {"ratio": "16:9"},
        {
            "aspect_ratio": "16:9",
            "--aspect_ratio": "16:9",
            "aspectRatio": "16:9",
            "aspect": "16:9",
            "ratio": "16:9",
            "size": "16:9",
            "--aspect-ratio": "16:9",
            "Aspect_Ratio": "16:9",
        },
        (
            {"image_config": {"aspect_ratio": "16:9"}},
            {"extra_body": {"google": {"image_config": {"aspect_ratio": "16:9"}}}},
            {"extra_body": '{"google": {"image_config": {"aspect_ratio": "16:9"}}}'},
            {"google": {"image_config": {"aspect_ratio": "16:9"}}},
            {"generationConfig": {"imageConfig": {"aspectRatio": "16:9"}}},
            {"extra_body": {"generation_config": {"image_config": {"aspect_ratio": "16:9"}}}},
            {"extra_body": {"aspect_ratio": "16:9"}},
            {"extra_body": {"--aspect_ratio": "16:9"}},
            {"parameters": {"aspectRatio": "16:9"}},
        ),
        (
            "--aspect_ratio 16:9",
            "--aspect 16:9",
            "--ar 16:9",
            "--ratio 16:9",
            "{ratio:16:9}",
            "—ar 16:9",
            "-ar 16:9",
            "--AR=16:9",
            "--ar 16 : 9",
            '--ar "16 9"',
            "--ratio 16：9",
            "--aspect-ratio 16x9",
        ),
        ("-16x9", "-landscape", "-16:9"),
    ),
    "tier": Row(
        BANANA,
        {"tier": "2K"},
        {"image_size": "2K", "resolution": "2k", "size": "2K", "imageSize": "2K", "--image_size": "2048"},
        (
            {"extra_body": {"google": {"image_config": {"image_size": "2K"}}}},
            {"google": {"imageConfig": {"imageSize": "2K"}}},
            {"generationConfig": {"imageConfig": {"imageSize": "2K"}}},
        ),
        ("--size 2K", "--resolution 2k"),
        ("-2K", "-2k"),
    ),
    "half a K": Row(
        BANANA, {"tier": "512"}, {"image_size": "0.5K", "size": 512}, (), ("--size 0.5K",), ("-0.5K", "-512")
    ),
    "tier of a film": Row(
        VEO, {"tier": "1080p"}, {"resolution": "1080P", "size": "1080p"}, (), ("--resolution 1080p",), ("-1080p",)
    ),
    "pixels": Row(
        FREE,
        {"width": 1280, "height": 720},
        {"size": "1280x720", "image_size": {"width": 1280, "height": 720}},
        ({"extra_body": {"width": 1280, "height": 720}},),
        ("--size 1280x720", "--size 1280×720"),
        ("-1280x720",),
    ),
    "file type": Row(
        BANANA,
        {"output_format": "jpeg"},
        {"output_format": "jpeg", "--output_format": "jpg", "format": "JPEG", "outputFormat": '"jpeg"'},
        (
            {"extra_body": {"output_format": "jpg"}},
            {"generationConfig": {"imageConfig": {"imageOutputOptions": {"mimeType": "image/jpeg"}}}},
        ),
        ("--output_format jpeg", '--format "jpg"'),
        (),
    ),
    "count": Row(
        BANANA,
        {"n": 2},
        {"n": 2, "num_images": "2", "numberOfImages": 2, "sampleCount": 2},
        ({"parameters": {"sampleCount": 2}},),
        ("--n 2", "{n:2}"),
        (),
    ),
    "quality": Row(
        GPT,
        {"quality": "high"},
        {"quality": "high"},
        ({"extra_body": {"quality": "hd"}},),
        ("--quality high",),
        ("-hd", "-pro"),
    ),
    "speed": Row(COG, {"quality": "speed"}, {"quality": "speed"}, (), ("--quality speed",), ("-fast",)),
    "seconds": Row(
        COG,
        {"seconds": 10.0},
        {"seconds": "10", "duration": 10, "durationSeconds": 10, "duration_seconds": "10s"},
        ({"parameters": {"durationSeconds": 10}},),
        ("--duration 10", "--seconds 10s"),
        ("-10s",),
    ),
    "frames": Row(COG, {"fps": 60}, {"fps": 60}, ({"extra_body": {"fps": "60"}},), ("--fps 60",), ()),
    "seed": Row(BANANA, {"seed": 7}, {"seed": 7}, ({"parameters": {"seed": 7}},), ("--seed 7",), ()),
    "not": Row(
        BANANA,
        {"negative_prompt": "dogs"},
        {"negative_prompt": "dogs", "negativePrompt": "dogs"},
        (),
        ("--no dogs",),
        (),
    ),
    "sound": Row(
        COG,
        {"audio": True},
        {"with_audio": True, "generate_audio": "true"},
        ({"parameters": {"generateAudio": True}},),
        (),
        (),
    ),
}
PLACES = [
    (name, prompt, members, suffix)
    for name, row in TABLE.items()
    for prompt, members, suffix in (
        *(("a cat", {word: value}, "") for word, value in row.body.items()),
        *(("a cat", place, "") for place in row.nested),
        *((f"a cat {flag}", {}, "") for flag in row.flags),
        *(("a cat", {}, suffix) for suffix in row.suffixes),
    )
]


@pytest.mark.parametrize(("name", "prompt", "members", "suffix"), PLACES)
def test_every_spelling_in_every_place(name: str, prompt: str, members: dict[str, Any], suffix: str) -> None:
    facts, expected = TABLE[name].facts, TABLE[name].expected
    request = chat(prompt, facts, suffix, **members)
    assert request.prompt == "a cat"
    assert {word: getattr(request, word) for word in expected} == expected
    assert request.extra == {}


def test_precedence_is_the_body_dashes_objects_flags_the_name_the_models_own() -> None:
    own = ModelFacts(kind="image", ratios=RATIOS, tiers=("1K", "2K", "4K"), tier="1K")
    nested: dict[str, Any] = {"extra_body": {"google": {"image_config": {"aspect_ratio": "4:3", "image_size": "2K"}}}}
    assert (chat(facts=own).tier, chat(facts=own).ratio) == ("1K", None)
    assert chat(suffix="-21x9").ratio == "21:9"
    assert chat("a cat --ar 1:1", suffix="-21x9").ratio == "1:1"
    assert chat("a cat --ar 1:1", suffix="-21x9", **nested).ratio == "4:3"
    nested |= {"--aspect_ratio": "3:2"}
    assert chat("a cat --ar 1:1", **nested).ratio == "3:2"
    assert chat("a cat --ar 1:1", **nested, aspect_ratio="16:9").ratio == "16:9"
    assert chat("a cat --ar 1:1", aspect_ratio="auto").ratio == "1:1"
    # pixels say a ratio and a tier: each is taken from its own highest place
    assert chat("a cat --size 1024x1024", aspect_ratio="16:9").ratio == "16:9"
    request = chat("a cat --size 4096x4096", aspect_ratio="16:9")
    assert (request.ratio, request.tier) == ("16:9", "4K")
    request = chat("a cat --size 1376x768", image_size="4K")
    assert (request.ratio, request.tier) == ("16:9", "4K")


@pytest.mark.parametrize(
    ("prompt", "members", "names"),
    [
        ("a cat", {"aspect_ratio": "16:9", "ratio": "1:1"}, ("aspect_ratio", "ratio")),
        ("a cat", {"aspect_ratio": "16:9", "size": "1024x1024"}, ("size", "aspect_ratio")),
        ("a cat", {"size": "1024x1024", "image_size": "2K"}, ("size", "image_size")),
        ("a cat", {"image_size": "2K", "resolution": "4K"}, ("image_size", "resolution")),
        ("a cat", {"size": "1024x1024", "width": 2048, "height": 2048}, ("size", "width")),
        (
            "a cat",
            {"google": {"image_config": {"aspect_ratio": "16:9"}}, "extra_body": {"aspect_ratio": "1:1"}},
            ("google.image_config.aspect_ratio", "extra_body.aspect_ratio"),
        ),
        ("a cat --ar 16:9 --ratio 1:1", {}, ("--ar", "--ratio")),
        ("a cat --ar 16:9 --ar 1:1", {}, ("--ar",)),
        ("a cat", {"n": 2, "num_images": 3}, ("n", "num_images")),
        ("a cat", {"output_format": "png", "format": "webp"}, ("output_format", "format")),
    ],
)
def test_a_contradiction_in_one_place_names_both(prompt: str, members: dict[str, Any], names: tuple[str, ...]) -> None:
    error = refused(prompt, **members)
    assert all(f"`{name}`" in error.message for name in names)
    assert error.param in names


def test_the_same_said_twice_is_none() -> None:
    assert chat(aspect_ratio="16:9", ratio="16x9", size="1376x768").ratio == "16:9"
    assert chat(output_format="jpg", format="jpeg").output_format == "jpeg"
    assert chat(image_size="0.5K", resolution=512).tier == "512"
    both = {"image_config": {"aspect_ratio": "16:9"}}
    assert chat(google=both, extra_body={"google": both}).ratio == "16:9"


@pytest.mark.parametrize(
    ("prompt", "left", "ratio"),
    [
        ("what --ar 1:1 means --ar 16:9", "what --ar 1:1 means", "16:9"),
        ("a cat --ar 16:9 on a mat", "a cat on a mat", "16:9"),
        ("a cat\n--ar 16:9\n", "a cat", "16:9"),
        ("--ar 16:9 a cat", "a cat", "16:9"),
        ("a sign that says --v 6", "a sign that says --v 6", None),
        ("ls --size big", "ls --size big", None),
        ("a cat --ar banana", "a cat --ar banana", None),
        ("git commit --no-verify", "git commit --no-verify", None),
        ("explain x--ar 16:9", "explain x--ar 16:9", None),
        ("a well-known cat -- ar 16:9", "a well-known cat -- ar 16:9", None),
        ("a cat --seconds 5", "a cat --seconds 5", None),
        ("paint --quality wood", "paint --quality wood", None),
        ("一条狗 --ar 9:16", "一条狗", "9:16"),
    ],
)
def test_flags_are_taken_out_and_text_is_left(prompt: str, left: str, ratio: str | None) -> None:
    request = chat(prompt)
    assert (request.prompt, request.ratio) == (left, ratio)


def test_other_words_go_on_to_the_provider_and_those_of_chats_do_not() -> None:
    request = chat(style="vivid", temperature=0.7, tools=[], extra_body={"guidance": 3, "seed": 1}, user="u")
    assert request.extra == {"style": "vivid", "guidance": 3}
    assert (request.user, request.seed) == ("u", 1)


@pytest.mark.parametrize(
    ("facts", "members", "size"),
    [
        (GPT, {"aspect_ratio": "3:2"}, (1536, 1024)),
        (GPT, {"aspect_ratio": "2:3", "resolution": "1K"}, (1024, 1536)),
        (GPT, {"size": "1024x1536"}, (1024, 1536)),
        (FREE, {"aspect_ratio": "16:9", "resolution": "2K"}, (2752, 1536)),
        (FREE, {"aspect_ratio": "16:9"}, (1376, 768)),
        (FREE, {"resolution": "2K"}, (2048, 2048)),
        (COG, {"aspect_ratio": "16:9", "resolution": "1080p"}, (1920, 1080)),
        (COG, {"aspect_ratio": "9:16"}, (720, 1280)),
        (COG, {"resolution": "4k"}, (3840, 2160)),
        (COG, {"resolution": "1080p"}, (1920, 1080)),
        (COG, {"size": "1024x1024"}, (1024, 1024)),
    ],
)
def test_pixels_where_a_model_takes_those(facts: ModelFacts, members: dict[str, Any], size: tuple[int, int]) -> None:
    request = chat("a dog", facts, **members)
    assert (request.width, request.height, request.ratio, request.tier) == (*size, None, None)


@pytest.mark.parametrize(
    ("facts", "prompt", "members", "param", "allowed"),
    [
        (NANO, "a cat", {"image_size": "4K"}, "image_size", "1K"),
        (NANO, "a cat", {"size": "2048x2048"}, "size", "1K"),
        (NANO, "a cat --ar 5:1", {}, "--ar", "16:9"),
        (GPT, "a cat", {"aspect_ratio": "16:9"}, "aspect_ratio", "1536x1024"),
        (GPT, "a cat", {"resolution": "4K"}, "resolution", "1536x1024"),
        (COG, "a dog", {"aspect_ratio": "21:9"}, "aspect_ratio", "1280x720"),
        (COG, "a dog", {"resolution": "480p"}, "resolution", "1280x720"),
        (COG, "a dog", {"size": "640x480"}, "size", "1280x720"),
        (COG, "a dog", {"output_format": "webm"}, "output_format", "jpeg"),
        (COG, "a dog", {"output_format": "png"}, "output_format", "mp4"),
        (BANANA, "a cat", {"output_format": "mp4"}, "output_format", "webp"),
        (VEO, "a dog --duration 5", {}, "--duration", "4, 6, 8"),
        (VEO, "a dog", {"parameters": {"durationSeconds": 5}}, "parameters.durationSeconds", "4, 6, 8"),
        (BANANA, "a cat", {"--aspect_ratio": "wide"}, "--aspect_ratio", "16:9"),
    ],
)
def test_what_a_model_does_not_take_names_the_spelling_and_what_is_allowed(
    facts: ModelFacts, prompt: str, members: dict[str, Any], param: str, allowed: str
) -> None:
    error = refused(prompt, facts, **members)
    assert error.param == param
    assert f"`{param}`" in error.message
    assert allowed in error.message


def test_a_model_of_one_tier_is_not_told_it_unless_its_name_says_so() -> None:
    assert (chat(facts=NANO, size="1024x1024").tier, chat(facts=NANO, image_size="1K").tier) == (None, None)
    named = ModelFacts(kind="image", tier="2K", tiers=("2K",), ratios=RATIOS)
    assert (chat(facts=named, size="16:9").tier, chat(facts=named, image_size="2K").tier) == ("2K", "2K")


def test_the_old_words_for_quality_mean_the_new_ones() -> None:
    assert [chat(facts=GPT, quality=word).quality for word in ("hd", "standard", "auto")] == ["high", "medium", None]
    assert chat("a dog", ANY_FILM, quality="odd").quality == "odd"


def test_names_made_of_a_model_and_words() -> None:
    config = build({}, {"GEMINI_API_KEY": "x", "ZHIPUAI_API_KEY": "x", "OPENAI_API_KEY": "x"}, {}).config
    routes = RoutingTable.build(config.providers, config.models)
    route = routes.route("cogvideox-3-16x9-10s")
    assert (route.name, route.kind, route.targets[0].target.model) == ("cogvideox-3-16x9-10s", "video", "cogvideox-3")
    fields = {"messages": Raw(b'[{"role":"user","content":"a dog"}]')}
    request = read_chat(ChatRequest(route.name, fields), "video", route.targets[0])
    assert (request.width, request.height, request.seconds) == (1280, 720, 10.0)
    assert routes.route("NanoBanana2-2K-16x9").targets[0].facts.tier == "2K"
    assert routes.route("gemini/veo-3.1-generate-001-1080p-8s").targets[0].suffix == "-1080p-8s"
    for name in ("openai/gpt-5.9-pro", "gemini/gemini-2.5-flash-image-pro", "NanoBanana2-2K"):
        assert routes.route(name).targets[0].suffix == ""
    with pytest.raises(GatewayError, match="does not exist"):
        routes.route("no-such-film-16x9")


def test_shipped_models_take_the_values_of_their_own_tables() -> None:
    names = ("OPENAI_API_KEY", "GEMINI_API_KEY", "XAI_API_KEY", "ZHIPUAI_API_KEY", "DASHSCOPE_API_KEY", "FAL_KEY")
    config = build({}, dict.fromkeys(names, "x"), {}).config
    for provider in config.providers.values():
        for name, facts in provider.models.items():
            if facts.kind == "text":
                continue
            for ratio in facts.ratios:
                chat("a dog", facts, aspect_ratio=ratio)
            for tier in facts.tiers:
                assert chat("a dog", facts, resolution=tier).tier in {tier, None}, name
            for size in facts.sizes:
                assert size == "*x*" or chat("a dog", facts, size=size).width, name


def test_the_documentation_names_every_word() -> None:
    page = (Path(__file__).parents[2] / "docs" / "parameters.md").read_text(encoding="utf-8")
    named = {plain(word) for word in re.findall(r"`(?:\{|-)*([A-Za-z0-9_\[\]]+)(?:[:}][^`]*)?`", page)}
    missing = ({*WORDS, *FLAGS, *MEMBERS} - {"user"}) - named
    assert not {word for word in missing if not word.endswith(("url", "image"))}, missing
    assert all(f"`{side.begins}`" in page and side.front_end in page for side in SIDES)
