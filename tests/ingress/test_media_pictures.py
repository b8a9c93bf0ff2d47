"""Pictures that clients send along, in every place; and requests that only look like ones for a picture."""

import base64
import json
from typing import Any

import pytest
from msgspec import Raw

from trunkline.core.chat import ChatRequest, Target
from trunkline.core.errors import GatewayError
from trunkline.core.media import MediaInput, MediaRequest
from trunkline.core.provider import ModelFacts, ModelKind, Provider
from trunkline.core.route import RouteTarget
from trunkline.ingress.media_params import read_asked, read_chat
from trunkline.ingress.openai_chat import parse
from trunkline.ingress.side_request import SIDES, side_request
from trunkline.wire.links import clean, kind_of

A, B = "https://x.example/a.jpg", "https://x.example/b.png?w=1&h=2"
OURS = "https://ai.example.com/v1/media/img_00112233445566778899aabb?exp=1&sig=xyz"
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(40)).decode()
DATA = f"data:image/png;base64,{PIXEL}"


def item(kind: ModelKind, most: int | None) -> RouteTarget:
    target = Target(provider="p", model="m", base_url="", dialect="d", side="image")
    return RouteTarget(target, Provider(), "none", ModelFacts(kind=kind, max_inputs=most))


def made(
    messages: list[dict[str, Any]], kind: ModelKind = "image", most: int | None = 14, **members: Any
) -> MediaRequest:
    fields = {name: Raw(json.dumps(value).encode()) for name, value in {"messages": messages, **members}.items()}
    return read_chat(ChatRequest("m", fields), kind, item(kind, most))


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: Any, **members: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **members}


def links(request: MediaRequest) -> list[str]:
    return [one.url for one in request.inputs]


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": A}},
        {"type": "image_url", "image_url": {"url": A, "detail": "high"}},
        {"type": "image_url", "image_url": A},
        {"type": "image", "image": A},
        {"type": "image", "url": A},
        {"type": "image", "source": {"type": "url", "url": A}},
        {"type": "input_image", "image_url": A},
        {"image_url": {"url": A}},
    ],
)
def test_a_picture_among_the_parts(part: dict[str, Any]) -> None:
    request = made([user([{"type": "text", "text": "make it"}, part, {"type": "text", "text": "blue"}])])
    assert (request.prompt, links(request)) == ("make it\nblue", [A])


@pytest.mark.parametrize(
    "members",
    [
        {"image_url": A},
        {"image_url": {"url": A}},
        {"image": A},
        {"image": [A]},
        {"images": [{"type": "image_url", "image_url": {"url": A}}]},
        {"input_reference": A},
        {"input_reference": {"image_url": A}},
        {"reference_images": [{"url": A}]},
        {"input_references": [A]},
        {"extra_body": {"image_url": A}},
        {"extra_body": {"images": [A]}},
    ],
)
def test_a_picture_among_the_members(members: dict[str, Any]) -> None:
    request = made([user("make it blue")], **members)
    assert (links(request), request.extra) == ([A], {})
    fields = {name: Raw(json.dumps(value).encode()) for name, value in {"prompt": "blue", **members}.items()}
    request = read_asked(fields, "image", item("image", None), "m")
    assert (links(request), request.extra) == ([A], {})


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_b64", "image_b64": PIXEL},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
        {"type": "image_url", "image_url": {"url": DATA}},
        {"type": "file", "file": {"filename": "a.png", "file_data": DATA}},
        {"type": "text", "text": f"look: {DATA}"},
        {"type": "text", "text": f"look ![x]({DATA})"},
    ],
)
def test_inline_pictures(part: dict[str, Any]) -> None:
    [one] = made([user([part, {"type": "text", "text": "blue"}])]).inputs
    assert (one.data[:4], one.mime_type) == (b"\x89PNG", "image/png")


def test_damaged_inline_pictures_are_refused() -> None:
    damaged = "data:image/png;base64,%%%"
    with pytest.raises(GatewayError, match="cannot be read") as caught:
        made([user("x")], image=damaged)
    assert (caught.value.status, caught.value.param) == (400, "image")
    with pytest.raises(GatewayError, match="cannot be read") as caught:
        made([user([{"type": "image_url", "image_url": damaged}])])
    assert (caught.value.status, caught.value.param) == (400, "messages")


def test_uploads() -> None:
    upload = MediaInput(file_id="file-1")
    assert made([user("blue")], image={"file_id": "file-1"}).inputs == (upload,)
    for part in ({"type": "file", "file": {"file_id": "file-1"}}, {"type": "image_file", "file_id": "file-1"}):
        assert made([user([part, {"type": "text", "text": "x"}])]).inputs == (upload,)
    request = made([user("x")], mask=A, image=B)
    assert {(one.url, one.role) for one in request.inputs} == {(A, "mask"), (B, "image")}


def test_first_and_last_frames() -> None:
    frames = [
        {"image_url": {"url": A}, "frame_type": "first_frame"},
        {"image_url": {"url": B}, "frame_type": "last_frame"},
    ]
    for members in (
        {"frame_images": frames},
        {"first_frame": A, "last_frame": B},
        {"frame_images": [A, B]},
        {"image_url": [A, B]},
        {"image": A, "image_tail": B},
    ):
        request = made([user("a dog")], "video", **members)
        assert [(one.url, one.role) for one in request.inputs] == [(A, "first_frame"), (B, "last_frame")]


@pytest.mark.parametrize(
    ("prompt", "left", "link"),
    [
        (f"{A} make it move", "make it move", A),
        (f"让它动起来：{A}，谢谢", "让它动起来：，谢谢", A),
        (f"把（{A}）变成蓝色", "把（）变成蓝色", A),
        (f"animate {B}.", "animate .", B),
        (f"a dog (see {A}).", "a dog (see ).", A),
        (f"a dog [{A}]", "a dog []", A),
        ("a dog https://x.example/pic_(1).png", "a dog", "https://x.example/pic_(1).png"),
        (f"blue ![]({A})", "blue", A),
        (f"blue {OURS}", "blue", OURS),
        ("no link here", "no link here", None),
    ],
)
def test_a_picture_in_the_prompt(prompt: str, left: str, link: str | None) -> None:
    kinds: tuple[ModelKind, ...] = ("image", "video")
    for kind in kinds:
        request = made([user(prompt)], kind)
        assert (request.prompt, links(request)) == (left, [link] if link else [])


def test_a_film_begins_with_whatever_the_first_link_shows() -> None:
    prompt = "animate https://x.example/p/7 as in https://x.example/doc"
    request = made([user(prompt)], "video")
    assert (request.prompt, links(request)) == ("animate as in https://x.example/doc", ["https://x.example/p/7"])
    assert made([user(prompt)], "image").inputs == ()
    assert made([user("like https://x.example/a.mp4")], "video").inputs == ()


@pytest.mark.parametrize(
    "answer",
    [
        assistant(f"Here you go! ![image]({OURS})"),
        assistant(OURS),
        assistant(f'<img src="{OURS}" alt="image">'),
        assistant("", images=[{"type": "image_url", "image_url": {"url": OURS}}]),
        assistant("x", media={"outputs": [OURS], "items": [{"type": "image", "url": OURS}]}),
        assistant("x", media={"outputs": [OURS]}),
        assistant(f"![image]({OURS})", media={"outputs": [OURS]}),
        assistant([{"type": "text", "text": f"![image]({OURS})"}]),
        assistant([{"type": "image_url", "image_url": {"url": OURS}}]),
    ],
)
def test_a_picture_made_before_is_input_again(answer: dict[str, Any]) -> None:
    request = made([user("a cat"), answer, user("make it blue")])
    assert request.inputs == (MediaInput(url=OURS, former=True),)
    assert made([user("a cat"), answer, user("make it blue")], most=0).inputs == ()


def test_only_the_latest_pictures_count_as_far_as_the_model_takes_them() -> None:
    turns = [user("a cat"), assistant(f"![a]({A})"), user("blue"), assistant(f"![b]({B})"), user("add a hat")]
    assert links(made(turns)) == [B]
    turns[-1] = user([{"type": "image_url", "image_url": {"url": A}}, {"type": "text", "text": "like this"}])
    assert links(made(turns)) == [B, A]
    assert links(made(turns, most=1)) == [A]
    assert links(made(turns, most=None)) == [A]
    uploaded = [user([{"type": "image_url", "image_url": A}]), assistant("No."), user("again")]
    assert links(made(uploaded)) == [A]
    two = [user("cats"), assistant(f"![a]({A})\n\n![b]({B})"), user("both blue")]
    assert links(made(two)) == [A, B]
    assert links(made(two, most=1)) == [B]
    inline = [user("a cat"), assistant(f"![image]({DATA})"), user("blue")]
    assert [one.data[:4] for one in made(inline).inputs] == [b"\x89PNG"]


def test_films_covers_and_the_links_of_others_made_before_are_no_pictures() -> None:
    cover, film = OURS.replace("img_", "cov_"), OURS.replace("img_", "vid_")
    for text in (
        f"[![cover]({cover})]({film})\n\n[video]({film})",
        film,
        f'<video src="{film}" controls>\n{film}\n</video>',
        f"[^1]: [cover]({cover})\n\n[^2]: [video]({film})\n\n[video]({film})[^1][^2]",
        "see https://x.example/a.png",
    ):
        assert made([user("a dog"), assistant(text), user("now a cat")], "video").inputs == ()
    items = [{"type": "video", "url": film}, {"type": "cover", "url": cover}]
    shown = assistant("", media={"outputs": [film], "items": items})
    assert made([user("a dog"), shown, user("now a cat")], "video").inputs == ()


def test_too_many_and_none_at_all() -> None:
    parts = [{"type": "image_url", "image_url": {"url": f"{A}?{n}"}} for n in range(3)]
    for most, says in ((2, "at most 2"), (0, "takes none")):
        with pytest.raises(GatewayError) as caught:
            made([user([*parts, {"type": "text", "text": "x"}])], most=most)
        assert (caught.value.code, caught.value.param) == ("invalid_value", "messages")
        assert says in caught.value.message
    assert len(made([user([*parts, {"type": "text", "text": "x"}])], most=None).inputs) == 3
    with pytest.raises(GatewayError, match="no prompt"):
        made([user("a cat"), assistant(f"![a]({OURS})"), user(" ")])
    assert links(made([user(parts[:1])])) == [f"{A}?0"]


@pytest.mark.parametrize("value", ["nonsense", {"x": 1}, 7, [{"url": ""}], "file:///etc/passwd"])
def test_what_is_no_picture_is_refused(value: Any) -> None:
    with pytest.raises(GatewayError) as caught:
        made([user("x")], image=value)
    assert (caught.value.status, caught.value.param) == (400, "image")


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("https://x.example/a_(1).mp4?sig=a%2Fb&exp=1.", "https://x.example/a_(1).mp4?sig=a%2Fb&exp=1"),
        ("https://x.example/a.png)", "https://x.example/a.png"),
        ("https://x.example/a.png**", "https://x.example/a.png"),
        ("https://x.example/a?b=[1]", "https://x.example/a?b=[1]"),
        ("https://x.example/a]).", "https://x.example/a"),
        ("https://x.example/a)[^1][^2]", "https://x.example/a"),
    ],
)
def test_where_a_link_ends(text: str, link: str) -> None:
    assert clean(text) == link


def test_what_a_link_leads_to() -> None:
    assert [kind_of(one) for one in (A, B, OURS, DATA)] == ["image"] * 4
    assert kind_of(OURS.replace("img_", "vid_")) == "video"
    assert kind_of("https://x.example/a.mp4?sig=1") == "video"
    assert kind_of("https://x.example/base/image/0f?w=1") == "image"
    assert kind_of("https://video.example/web/task_1") is None


@pytest.mark.parametrize("side", SIDES)
def test_every_side_request_of_the_table(side: Any) -> None:
    for content in (f"{side.begins} x", [{"type": "text", "text": f"\n{side.begins} x"}]):
        request = parse(json.dumps({"model": "m", "messages": [user("a cat"), user(content)]}).encode())
        told = side_request(request)
        assert side.front_end in told
        assert side.advice in told


def test_json_is_none_for_pictures_and_a_drawing_is_no_side_request() -> None:
    for asked in ({"type": "json_object"}, {"type": "json_schema", "json_schema": {"name": "x"}}):
        assert side_request(
            parse(json.dumps({"model": "m", "messages": [user("x")], "response_format": asked}).encode())
        )
    for messages in (
        [user("a cat")],
        [user("### Task:\nx"), assistant("x"), user("a cat")],
        [{"role": "system", "content": "### Task: draw"}, user("a cat")],
        [user("a poster that says ### Task:")],
    ):
        assert not side_request(parse(json.dumps({"model": "m", "messages": messages}).encode()))
