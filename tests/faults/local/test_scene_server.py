"""The scene model's process over real HTTP, as the official client library sees it."""

import base64
import contextlib
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import av
import openai
import pytest
from PIL import Image

KEY = "a-key-of-this-test"
pytestmark = [
    pytest.mark.faults,
    pytest.mark.filterwarnings("ignore:The Sora API:DeprecationWarning"),  # of OpenAI, not of its shape
]


@contextlib.contextmanager
def child(**settings: str) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, object]]]:
    """The process and the line that it says."""
    command = [sys.executable, "-P", "-m", "trunkline.local.scene"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps({"key": KEY, **settings}).encode() + b"\n")
        process.stdin.flush()
        yield process, json.loads(process.stdout.readline())
        process.stdin.close()
        process.wait(60)


@pytest.fixture(scope="module")
def client() -> Iterator[openai.OpenAI]:
    with child() as (_, said):
        base_url = f"http://127.0.0.1:{said['port']}/v1"
        with openai.OpenAI(base_url=base_url, api_key=KEY, max_retries=0) as client:
            yield client


def opened(b64_json: str | None) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(b64_json or "")))


def test_pictures(client: openai.OpenAI) -> None:
    answer = client.images.generate(
        prompt="a pink-haired girl and a glorp", model="local/image", n=2, size="688x384", output_format="webp",
        extra_body={"seed": 7},
    )  # fmt: skip
    assert answer.data
    pictures = [opened(one.b64_json) for one in answer.data]
    assert [(one.format, one.size) for one in pictures] == [("WEBP", (688, 384))] * 2
    assert pictures[0].tobytes() != pictures[1].tobytes()
    assert "girl with pink hair" in (answer.data[0].revised_prompt or "")
    assert "glorp" in (answer.data[0].revised_prompt or "")


def test_the_same_seed_gives_the_same_picture(client: openai.OpenAI) -> None:
    first, second = (
        client.images.generate(prompt="一条狗", size="256x256", extra_body={"seed": 1}).data for _ in range(2)
    )
    assert first
    assert second
    assert first[0].b64_json == second[0].b64_json


def test_an_edit_draws_onto_the_given_picture(client: openai.OpenAI) -> None:
    under, mask = io.BytesIO(), io.BytesIO()
    Image.new("RGB", (640, 480), "#123456").save(under, "PNG")
    transparent_right = Image.new("RGBA", (640, 480), "#000000FF")
    transparent_right.paste((0, 0, 0, 0), (320, 0, 640, 480))
    transparent_right.save(mask, "PNG")
    plain = client.images.edit(image=("a.png", under.getvalue()), prompt="a big elephant", extra_body={"seed": 3})
    masked = client.images.edit(
        image=[("a.png", under.getvalue())],
        mask=("m.png", mask.getvalue()),
        prompt="an elephant",
        extra_body={"seed": 3},
    )
    assert plain.data
    assert masked.data
    drawn, half = opened(plain.data[0].b64_json), opened(masked.data[0].b64_json)
    assert drawn.size == half.size == (640, 480)
    assert drawn.getpixel((2, 2)) == (0x12, 0x34, 0x56)
    assert len(drawn.getcolors(640 * 480) or []) > 20
    assert half.crop((0, 0, 318, 480)).getcolors(9) == [(318 * 480, (0x12, 0x34, 0x56))]


def finished(client: openai.OpenAI, film_id: str) -> openai.types.Video:
    percent = 0
    while (film := client.videos.retrieve(film_id)).status in {"queued", "in_progress"}:
        health = str(client.base_url).replace("/v1/", "/health")
        assert client.get(health, cast_to=object) == {"status": "ok"}
        assert percent <= film.progress < 100
        percent = film.progress
        time.sleep(0.05)
    return film


def test_a_film(client: openai.OpenAI) -> None:
    begun = client.videos.create(
        prompt="a dog running on the beach at sunset", seconds="4", extra_body={"seed": 2, "size": "320x180"}
    )
    assert (begun.object, begun.size, begun.seconds) == ("video", "320x180", "4")
    film = finished(client, begun.id)
    assert (film.status, film.progress, film.error) == ("completed", 100, None)
    with av.open(io.BytesIO(client.videos.download_content(film.id).content)) as container:
        assert isinstance(container, av.container.InputContainer)
        assert len(list(container.decode(video=0))) == 48
    cover = Image.open(io.BytesIO(client.videos.download_content(film.id, variant="thumbnail").content))
    assert (cover.format, cover.size) == ("WEBP", (320, 180))
    assert client.videos.delete(film.id).deleted
    with pytest.raises(openai.NotFoundError):
        client.videos.retrieve(film.id)


def test_a_film_that_begins_with_a_picture(client: openai.OpenAI) -> None:
    under = io.BytesIO()
    Image.new("RGB", (64, 64), "#FF0000").save(under, "JPEG")
    film = client.videos.create(prompt="snow", size="160x160", seconds="1", input_reference=("a.jpg", under.getvalue()))  # type: ignore[arg-type]
    finished(client, film.id)
    cover = Image.open(io.BytesIO(client.videos.download_content(film.id, variant="thumbnail").content))
    assert cover.convert("RGB").resize((1, 1)).getpixel((0, 0))[0] > 200  # type: ignore[index]


def test_a_film_can_be_stopped(client: openai.OpenAI) -> None:
    film = client.videos.create(prompt="a storm at sea", size="1280x720", seconds="12")
    with pytest.raises(openai.ConflictError, match="not completed"):
        client.videos.download_content(film.id)
    client.videos.delete(film.id)
    with pytest.raises(openai.NotFoundError):
        client.videos.retrieve(film.id)


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("images/generations", {}, (400, "missing_required_parameter", "prompt")),
        ("images/generations", {"prompt": "a", "size": "huge"}, (400, "invalid_value", "size")),
        ("images/generations", {"prompt": "a", "size": "90000x1"}, (400, "invalid_value", "size")),
        ("images/generations", {"prompt": "a", "n": 11}, (400, "invalid_value", "n")),
        ("images/generations", {"prompt": "a", "output_format": "gif"}, (400, "invalid_value", "output_format")),
        ("images/generations", {"prompt": "a", "response_format": "url"}, (400, "invalid_value", "response_format")),
        ("images/edits", {"prompt": "a"}, (400, "missing_required_parameter", "image")),
        ("images/edits", {"prompt": "a", "image": "https://example.com/a.png"}, (400, "invalid_value", "image")),
        ("images/edits", {"prompt": "a", "image": "data:image/png;base64,QUFBQQ=="}, (400, "invalid_image", "image")),
        ("videos", {"prompt": "a", "size": "321x180"}, (400, "invalid_value", "size")),
        ("videos", {"prompt": "a", "seconds": "60"}, (400, "invalid_value", "seconds")),
        ("audio/speech", {}, (404, "unknown_endpoint", None)),
    ],
)
def test_errors_name_the_field(
    client: openai.OpenAI, path: str, body: dict[str, object], expected: tuple[int, str, str | None]
) -> None:
    with pytest.raises(openai.APIStatusError) as raised:
        client.post(path, body=body, cast_to=object)
    assert (raised.value.status_code, raised.value.code, raised.value.param) == expected
    assert (expected[2] or "") in raised.value.message


def test_a_key_is_needed(client: openai.OpenAI) -> None:
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="another").models.list()
    assert [model.id for model in client.models.list()] == ["trunkline-scene"]


def test_too_much_at_once_is_refused(client: openai.OpenAI) -> None:
    films: list[str] = []
    with pytest.raises(openai.RateLimitError):
        ask_without_end(client, films)
    for film_id in films:
        client.videos.delete(film_id)
    assert len(films) >= 16


def ask_without_end(client: openai.OpenAI, films: list[str]) -> None:
    films.extend(client.videos.create(prompt="fog", size="1280x720", seconds="12").id for _ in range(40))


def test_an_encoder_that_is_not_there_is_told() -> None:
    with child(encoder="h264_of_mars") as (_, said):
        assert "h264_of_mars" in str(said["error"])


def test_nothing_outlives_the_parent() -> None:
    with child() as (process, said):
        with openai.OpenAI(base_url=f"http://127.0.0.1:{said['port']}/v1", api_key=KEY, max_retries=0) as client:
            data = client.images.generate(prompt="a cat", size="auto").data
            assert data
            assert opened(data[0].b64_json).size == (1024, 1024)
        session = os.getsid(process.pid)
        assert len(members(session)) > 1
    deadline = time.monotonic() + 60
    while members(session) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert members(session) == []


def members(session: int) -> list[int]:
    """The processes of a session, zombies not counted."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, own = stat.read_text().rpartition(")")[2].split()[:4]
            found += [int(stat.parent.name)] if int(own) == session and state != "Z" else []
    return found


def test_what_is_allowed_is_told(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="`background` is transparent; allowed is auto, opaque"):
        client.images.generate(prompt="a", background="transparent")
