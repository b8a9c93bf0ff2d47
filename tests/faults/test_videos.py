"""`/v1/videos`: films as durable jobs, told as OpenAI Videos; the same jobs as those of chats."""

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest
from gateway import Answer, Gateway, gateway
from media_gateway import draw, form, media_of, numbered, to_media
from media_providers import MediaProviders
from media_samples import film, picture
from raw_upstream import Peer, raw_upstream

pytestmark = pytest.mark.faults
DOG: dict[str, Any] = {"model": "paint/reel", "prompt": "a dog"}


async def ended(gate: Gateway, name: str) -> dict[str, Any]:
    """The film, when nothing more happens to it."""
    while True:
        shown: dict[str, Any] = await (await gate.get(f"/v1/videos/{name}")).json()
        if shown["status"] in {"completed", "failed"}:
            return shown
        await asyncio.sleep(0.1)


async def make(gate: Gateway, **members: Any) -> dict[str, Any]:
    answer = await gate.ask(DOG | members, "/v1/videos")
    assert answer.status == 200, await answer.json()
    made: dict[str, Any] = await answer.json()
    return made


async def refused(answer: Answer) -> tuple[int, str, str | None]:
    error = (await answer.json())["error"]
    return answer.status, error["code"], error["param"]


async def test_a_film_is_made_shown_and_fetched(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        answer = await gate.ask(DOG | {"seconds": "4", "size": "1280x720"}, "/v1/videos")
        assert answer.status == 200
        made = await answer.json()
        assert answer.headers["x-trunkline-job-id"] == made["id"]
        assert answer.headers["openai-poll-after-ms"] == "1000"
        assert answer.headers["x-trunkline-provider"] == "paint"
        assert (made["object"], made["status"], made["progress"]) == ("video", "queued", 0)
        assert (made["seconds"], made["size"], made["prompt"]) == ("4", "1280x720", "a dog")
        assert (made["model"], made["error"], made["completed_at"]) == ("paint/reel", None, None)
        done = await ended(gate, made["id"])
        assert (done["status"], done["progress"], done["seconds"]) == ("completed", 100, "4")
        assert done["size"] == "64x48"
        assert done["completed_at"] >= done["created_at"]
        assert done["expires_at"] > done["completed_at"]
        assert [item["type"] for item in done["media"]["items"]] == ["video", "cover"]
        assert providers.url not in json.dumps(done)
        place = f"/v1/videos/{made['id']}/content"
        whole = await gate.get(place)
        data = await whole.body()
        assert (whole.headers["content-type"], data) == ("video/mp4", film(noisy=True))
        part = await gate.get(place, range="bytes=10-19")
        assert (part.status, await part.body()) == (206, data[10:20])
        assert part.headers["content-range"] == f"bytes 10-19/{len(data)}"
        head = await gate.get(place, "HEAD")
        assert (head.status, head.headers["content-length"]) == (200, str(len(data)))
        assert (await gate.get(place, if_none_match=head.headers["etag"])).status == 304
        assert (await gate.get(place, range="bytes=9999999-")).status == 416
        cover = await gate.get(f"{place}?variant=thumbnail")
        assert (cover.status, cover.headers["content-type"].partition("/")[0]) == (200, "image")
        assert await refused(await gate.get(f"{place}?variant=spritesheet")) == (400, "invalid_value", "variant")


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ({}, ("5", "1280x720")),
        ({"seconds": "4"}, ("4", "1280x720")),
        ({"aspect_ratio": "9:16"}, ("5", None)),
        ({"size": "640x480"}, ("5", "640x480")),
    ],
)
async def test_a_queued_film_is_as_the_model_makes_it(
    tmp_path: Path, asked: dict[str, Any], shown: tuple[str, str | None]
) -> None:
    async with MediaProviders() as providers:
        tables = to_media(providers.url)
        tables["providers"]["paint"]["models"]["reel"] |= {"usual_seconds": 5, "usual_size": "1280x720"}
        async with gateway(tmp_path, tables) as gate:
            made = await make(gate, **asked)
            assert (made["status"], made["seconds"], made["size"]) == ("queued", *shown)
            done = await ended(gate, made["id"])
            assert (done["status"], done["size"]) == ("completed", "64x48")
            [order] = [one.json for one in providers.asked if one.method == "POST" and one.path.endswith("/videos")]
            assert order.get("seconds") == asked.get("seconds")


async def test_a_form_brings_the_first_frame(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        parts = ("model", "paint/reel"), ("prompt", "it moves"), ("seconds", "4"), ("input_reference", picture())
        body, kind = form(*parts)
        answer = await gate.send("POST", "/v1/videos", body, content_type=kind)
        await answer.read_head()
        done = await ended(gate, (await answer.json())["id"])
        assert (done["status"], done["seconds"]) == ("completed", "4")
        url = f"data:image/png;base64,{base64.b64encode(picture()).decode()}"
        body, kind = form(("model", "paint/reel"), ("prompt", "x"), ("input_reference[image_url]", url))
        answer = await gate.send("POST", "/v1/videos", body, content_type=kind)
        await answer.read_head()
        await ended(gate, (await answer.json())["id"])
        await ended(gate, (await make(gate, input_reference={"image_url": url}))["id"])
        asked = [one.body for one in providers.asked if (one.method, one.path) == ("POST", "/openai/v1/videos")]
        assert len(asked) == 3
        assert all(picture() in one for one in asked)


async def test_films_are_listed_page_by_page(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        assert await (await gate.get("/v1/videos")).json() == {
            "object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False,
        }  # fmt: skip
        names = [(await make(gate, prompt=f"film {n}"))["id"] for n in range(5)]
        page = await (await gate.get("/v1/videos?limit=2")).json()
        assert [one["id"] for one in page["data"]] == names[:2:-1]
        assert (page["first_id"], page["last_id"], page["has_more"]) == (names[4], names[3], True)
        rest = await (await gate.get(f"/v1/videos?limit=10&after={names[3]}")).json()
        assert [one["id"] for one in rest["data"]] == names[2::-1]
        assert rest["has_more"] is False
        up = await (await gate.get("/v1/videos?order=asc&limit=3")).json()
        assert [one["id"] for one in up["data"]] == names[:3]
        for query, status, code, param in (
            ("limit=0", 400, "invalid_value", "limit"),
            ("limit=x", 400, "invalid_value", "limit"),
            ("order=up", 400, "invalid_value", "order"),
            ("after=video_nope", 404, "not_found", None),
        ):
            assert await refused(await gate.get(f"/v1/videos?{query}")) == (status, code, param)


async def test_a_film_of_a_chat_is_here_too_and_the_other_way_round(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        chat = await gate.ask(draw(model="paint/reel", stream=True))
        media = media_of(await numbered(chat))
        done = await ended(gate, chat.headers["x-trunkline-job-id"])
        assert done["media"] == media
        answer = await gate.ask(DOG, "/v1/videos")
        streamed = media_of(await numbered(await gate.get(f"/v1/streams/{answer.headers['x-trunkline-stream-id']}")))
        assert streamed == (await ended(gate, answer.headers["x-trunkline-job-id"]))["media"]


async def test_delete_stops_what_runs_and_lets_go_of_what_is_done(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        done = await ended(gate, (await make(gate))["id"])
        [film_url, cover_url] = [item["url"].removeprefix("http://gateway") for item in done["media"]["items"]]
        gone = await (await gate.get(f"/v1/videos/{done['id']}", "DELETE")).json()
        assert gone == {"id": done["id"], "object": "video.deleted", "deleted": True}
        assert (await gate.get(f"/v1/videos/{done['id']}")).status == 404
        assert (await gate.get(f"/v1/videos/{done['id']}/content")).status == 404
        assert [(await gate.get(url)).status for url in (film_url, cover_url)] == [410, 410]
        assert (await gate.get(f"/v1/videos/{done['id']}", "DELETE")).status == 404
        providers.polls = 1000
        answer = await gate.ask(DOG, "/v1/videos")
        running = await answer.json()
        while not providers.tasks.get("task-2"):  # noqa: ASYNC110 - the provider is told when it is told
            await asyncio.sleep(0.05)
        gone = await (await gate.get(f"/v1/videos/{running['id']}", "DELETE")).json()
        assert gone["deleted"] is True
        assert providers.tasks["task-2"]["cancelled"]
        assert (await (await gate.get("/v1/videos")).json())["data"] == []
        expired = await gate.get(f"/v1/streams/{answer.headers['x-trunkline-stream-id']}")
        assert await refused(expired) == (410, "stream_expired", None)


async def test_a_failure_is_the_films_own(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        failed = await ended(gate, (await make(gate, prompt="#refused"))["id"])
        assert failed["status"] == "failed"
        assert failed["error"]["code"]
        assert failed["error"]["message"]
        answer = await gate.get(f"/v1/videos/{failed['id']}/content")
        error = (await answer.json())["error"]
        assert (answer.status, error["code"]) == (404, "not_found")
        assert failed["error"]["message"] in error["message"]


BAD: list[tuple[dict[str, Any], int, str, str | None]] = [
    ({"prompt": "x"}, 400, "missing_required_parameter", "model"),
    ({"model": "paint/reel"}, 400, "missing_required_parameter", "prompt"),
    (DOG | {"seconds": "long"}, 400, "invalid_value", "seconds"),
    (DOG | {"size": "huge"}, 400, "invalid_value", "size"),
    (DOG | {"model": "paint/brush"}, 400, "invalid_value", "model"),
    (DOG | {"input_reference": 7}, 400, "invalid_value", "input_reference"),
    (DOG | {"input_reference": "data:image/png;base64,AAAA"}, 400, "invalid_value", "input_reference"),
    (DOG | {"seconds": 61}, 400, "invalid_value", "seconds"),
    (DOG | {"prompt": "a dog --fps 121"}, 400, "invalid_value", "--fps"),
    (DOG | {"callback_url": "nowhere"}, 400, "invalid_value", "callback_url"),
]


async def test_bad_input_is_told_by_name(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        for body, status, code, param in BAD:
            assert await refused(await gate.ask(body, "/v1/videos")) == (status, code, param)
        assert await refused(await gate.get("/v1/videos/video_x")) == (404, "not_found", None)
        assert await refused(await gate.ask({}, "/v1/videos/video_x/remix")) == (404, "unknown_endpoint", None)
        assert providers.asked == []


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "[::1]", "169.254.169.254", "10.0.0.7:8080", "localhost", "[::ffff:10.0.0.7]"]
)
async def test_a_callback_that_would_never_be_called_is_refused(tmp_path: Path, host: str) -> None:
    async with MediaProviders() as providers:
        tables = to_media(providers.url, media={})
        async with gateway(tmp_path, tables) as gate:
            answer = await gate.ask(DOG | {"callback_url": f"https://{host}/hook"}, "/v1/videos")
            assert await refused(answer) == (400, "invalid_value", "callback_url")
            assert (await gate.ask(DOG | {"callback_url": "https://hooks.example/"}, "/v1/videos")).status == 200


async def test_an_idempotency_key_joins(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        first, again = [await gate.ask(DOG, "/v1/videos", idempotency_key="k") for _ in range(2)]
        assert (await first.json())["id"] == (await again.json())["id"]
        await ended(gate, first.headers["x-trunkline-job-id"])
        assert len(providers.tasks) == 1


async def test_a_callback_tells_the_end(tmp_path: Path) -> None:
    heard: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()

    async def hear(peer: Peer) -> None:
        head, body = await peer.request()
        heard.put_nowait((head, body))
        await peer.answer(b"")

    async with MediaProviders() as providers, raw_upstream(hear) as hook:
        async with gateway(tmp_path, to_media(providers.url)) as gate:
            answer = await gate.ask(DOG | {"callback_url": f"{hook.url}/hook"}, "/v1/videos")
            assert answer.headers["x-trunkline-callback-secret"].startswith("whsec_")
            head, body = await heard.get()
            news = json.loads(body)
            assert (news["type"], news["data"]["id"]) == ("video.completed", answer.headers["x-trunkline-job-id"])
            assert news["data"]["media"]["outputs"][0].startswith("http://gateway/v1/media/vid_")
            assert "webhook-signature" in head.lower()
