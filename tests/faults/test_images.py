"""`/v1/images/generations` and `/v1/images/edits`: the same durable jobs as in chats, told as OpenAI Images."""

import base64
import io
import json
from pathlib import Path
from typing import Any

import pytest
from gateway import Answer, Gateway, gateway
from media_gateway import fetched, form, to_media, told
from media_providers import MediaProviders
from media_samples import picture
from PIL import Image

pytestmark = pytest.mark.faults
MAKE, EDIT = "/v1/images/generations", "/v1/images/edits"
CAT: dict[str, Any] = {"model": "paint/brush", "prompt": "a cat"}


async def send_form(gate: Gateway, *parts: tuple[str, str | bytes], **headers: str) -> Answer:
    body, kind = form(*parts)
    answer = await gate.send("POST", EDIT, body, content_type=kind, **headers)
    await answer.read_head()
    return answer


def size_of(encoded: str) -> tuple[str | None, tuple[int, int]]:
    with Image.open(io.BytesIO(base64.b64decode(encoded))) as shown:
        return shown.format, shown.size


async def test_a_picture_comes_as_link_and_base64_with_usage_and_cost(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        answer = await gate.ask(CAT, MAKE)
        body = await answer.json()
        assert answer.status == 200
        [one] = body["data"]
        assert await fetched(gate, one["url"]) == base64.b64decode(one["b64_json"])
        assert body["created"] > 0
        assert (body["output_format"], body["size"]) == ("png", "64x48")
        assert (body["quality"], body["background"]) == ("auto", "auto")
        assert body["usage"]["input_tokens"] == 9
        assert body["usage"]["output_tokens"] == 272
        assert body["usage"]["total_tokens"] == 281
        assert body["usage"]["input_tokens_details"] == {"image_tokens": 0, "text_tokens": 9}
        headers = answer.headers
        assert (headers["x-trunkline-provider"], headers["x-trunkline-model"]) == ("paint", "brush")
        assert headers["x-trunkline-cost"] == "0.040000"
        assert headers["x-trunkline-job-id"].startswith("image_")
        assert headers["x-request-id"]
        assert providers.url not in json.dumps(body)


@pytest.mark.parametrize(
    ("asked", "given"), [("url", {"url"}), ("b64_json", {"b64_json"}), (None, {"url", "b64_json"})]
)
async def test_response_format_and_n(tmp_path: Path, asked: str | None, given: set[str]) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        body = await (await gate.ask(CAT | {"n": 3, "response_format": asked}, MAKE)).json()
        assert [set(one) for one in body["data"]] == [given] * 3


async def test_a_link_of_a_provider_becomes_ours(tmp_path: Path) -> None:
    tables = to_media("http://x.invalid")
    async with MediaProviders() as providers:
        tables = to_media(providers.url)
        facts = {"kind": "image", "formats": ["png"]}
        tables["providers"]["grey"] = {
            "base_url": f"{providers.url}/xai/v1",
            "api_key": "x",
            "image": {"dialect": "xai_images"},
            "models": {"imagine": facts},
        }
        async with gateway(tmp_path, tables) as gate:
            body = await (await gate.ask(CAT | {"model": "grey/imagine", "output_format": "webp"}, MAKE)).json()
            [one] = body["data"]
            assert one["url"].startswith("http://gateway/v1/media/img_")
            assert one["revised_prompt"] == "a cat"
            assert size_of(one["b64_json"])[0] == "WEBP"  # the provider gives PNG only: it is converted
            assert body["output_format"] == "webp"
            assert providers.url not in json.dumps(body)


async def test_a_stream_tells_sketches_then_the_picture(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        answer = await gate.ask(CAT | {"stream": True, "partial_images": 1}, MAKE)
        assert answer.headers["content-type"].startswith("text/event-stream")
        sketch, done = await told(answer)
        assert sketch[:2] == (1, "image_generation.partial_image")
        assert done[1] == "image_generation.completed"
        assert sketch[2]["type"] == "image_generation.partial_image"
        assert sketch[2]["partial_image_index"] == 0
        assert size_of(sketch[2]["b64_json"]) == ("PNG", (64, 48))
        assert size_of(done[2]["b64_json"]) == ("PNG", (80, 60))
        assert done[2]["usage"]["total_tokens"] == 281
        assert (done[2]["size"], done[2]["output_format"]) == ("80x60", "png")
        assert done[2]["created_at"] > 0
        assert await fetched(gate, done[2]["url"]) == base64.b64decode(done[2]["b64_json"])
        stream = answer.headers["x-trunkline-stream-id"]
        again = await told(await gate.get(f"/v1/streams/{stream}"))
        assert again == [sketch, done]
        rest = await told(await gate.get(f"/v1/streams/{stream}", last_event_id="1"))
        assert rest == [done]


async def test_who_does_not_stream_asks_for_no_sketches(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        await (await gate.ask(CAT | {"partial_images": 2}, MAKE)).json()
        assert "partial_images" not in providers.asked[0].json
        events = await told(await gate.ask(CAT | {"stream": True, "n": 2}, MAKE))
        assert [name for _, name, _ in events] == ["image_generation.completed"] * 2
        assert ["usage" in value for _, _, value in events] == [False, True]


async def test_pictures_are_edited_from_a_form(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        answer = await send_form(
            gate,
            ("model", "paint/brush"),
            ("prompt", "a hat on it"),
            ("n", "2"),
            ("image[]", picture("PNG")),
            ("image[]", picture("JPEG")),
            ("mask", picture("PNG", (64, 48), "RGBA")),
        )
        body = await answer.json()
        assert (answer.status, len(body["data"])) == (200, 1)  # the fake gives one for a form
        [asked] = [one for one in providers.asked if one.path == "/openai/v1/images/edits"]
        assert asked.body.count(b'name="image[]"') == 2
        assert asked.body.count(b'name="mask"') == 1
        for sent in (picture("PNG"), picture("JPEG"), picture("PNG", (64, 48), "RGBA")):
            assert sent in asked.body


async def test_an_edit_streams_events_of_its_own(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        [done] = await told(
            await send_form(gate, ("model", "paint/brush"), ("prompt", "x"), ("stream", "true"), ("image", picture()))
        )
        assert done[1] == done[2]["type"] == "image_edit.completed"


async def test_an_edit_in_json_by_data_url_link_and_upload(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        data = f"data:image/png;base64,{base64.b64encode(picture()).decode()}"
        made = await (await gate.ask(CAT, MAKE)).json()
        upload, kind = form(("purpose", "vision"), ("file", picture("JPEG")))
        answer = await gate.send("POST", "/v1/files", upload, content_type=kind)
        await answer.read_head()
        file_id = (await answer.json())["id"]
        for image in (data, {"image_url": made["data"][0]["url"]}, {"file_id": file_id}):
            answer = await gate.ask(CAT | {"images": [image], "mask": {"image_url": data}}, EDIT)
            assert answer.status == 200, await answer.json()
        sent = [one.body for one in providers.asked if one.path.endswith("/edits")]
        assert base64.b64decode(made["data"][0]["b64_json"]) in sent[1]
        assert picture("JPEG") in sent[2]
        assert all(b'name="mask"' in body for body in sent)


BAD: list[tuple[str, dict[str, Any], int, str, str | None]] = [
    (MAKE, {"prompt": "x"}, 400, "missing_required_parameter", "model"),
    (MAKE, {"model": "paint/brush"}, 400, "missing_required_parameter", "prompt"),
    (MAKE, CAT | {"prompt": 7}, 400, "invalid_value", "prompt"),
    (MAKE, CAT | {"n": 0}, 400, "invalid_value", "n"),
    (MAKE, CAT | {"n": 99}, 400, "invalid_value", "n"),
    (MAKE, CAT | {"stream": "maybe"}, 400, "invalid_value", "stream"),
    (MAKE, CAT | {"response_format": "gif"}, 400, "invalid_value", "response_format"),
    (MAKE, CAT | {"output_format": "bmp"}, 400, "invalid_value", "output_format"),
    (MAKE, CAT | {"partial_images": 4}, 400, "invalid_value", "partial_images"),
    (MAKE, CAT | {"callback_url": "ftp://x"}, 400, "invalid_value", "callback_url"),
    (MAKE, CAT | {"model": "paint/reel"}, 400, "invalid_value", "model"),
    (MAKE, CAT | {"model": "nobody/x"}, 404, "model_not_found", "model"),
    (MAKE, {"model": "banana/nano", "prompt": "x", "size": "100x900"}, 400, "invalid_value", "size"),
    (EDIT, CAT, 400, "missing_required_parameter", "image"),
    (EDIT, CAT | {"image": "no link"}, 400, "invalid_value", "image"),
    (EDIT, CAT | {"image": "data:image/png;base64,QUJD"}, 400, "invalid_value", "image"),
    (EDIT, CAT | {"image": "https://x.example/a.png", "mask": 7}, 400, "invalid_value", "mask"),
]


async def test_bad_input_is_told_by_name(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        for path, body, status, code, param in BAD:
            answer = await gate.ask(body, path)
            error = (await answer.json())["error"]
            assert (answer.status, error["code"], error["param"]) == (status, code, param), error
            assert error["type"] == "invalid_request_error"
        answer = await send_form(gate, ("model", "paint/brush"), ("prompt", "x"), ("picture", picture()))
        assert (await answer.json())["error"]["param"] == "picture"
        assert providers.asked == []


@pytest.mark.parametrize(
    ("prompt", "status", "code"),
    [
        ("#refused", 400, "content_filter"),
        ("#none", 502, "upstream_no_image"),
        ("#429", 429, "rate_limit_exceeded"),
        ("#500", 502, "upstream_error"),
        ("#cut", 502, "submit_unknown"),
        ("#html", 502, "upstream_malformed"),
    ],
)
async def test_errors_are_a_status_or_the_last_event(tmp_path: Path, prompt: str, status: int, code: str) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        whole = await gate.ask(CAT | {"prompt": prompt}, MAKE)
        error = (await whole.json())["error"]
        assert (whole.status, error["code"]) == (status, code)
        assert whole.headers["x-should-retry"] == "false"
        assert whole.headers.get("retry-after") == ("7" if status == 429 else None)
        events = await told(await gate.ask(CAT | {"prompt": prompt, "stream": True}, MAKE))
        assert events[-1][1] == "error"
        assert events[-1][2]["error"]["code"] == code


async def test_an_idempotency_key_joins_and_replays(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        first = await gate.ask(CAT, MAKE, idempotency_key="k")
        again = await gate.ask(CAT, MAKE, idempotency_key="k")
        assert await first.json() == await again.json()
        assert first.headers["x-trunkline-job-id"] == again.headers["x-trunkline-job-id"]
        other = await gate.ask(CAT | {"n": 2}, MAKE, idempotency_key="k")
        assert (other.status, (await other.json())["error"]["code"]) == (409, "idempotency_conflict")
        retried = await gate.ask(CAT, MAKE, x_stainless_retry_count="1")
        assert retried.headers["x-trunkline-job-id"] == first.headers["x-trunkline-job-id"]
        assert len(providers.asked) == 1
        parts = ("model", "paint/brush"), ("prompt", "x"), ("image", picture())
        edits = [await send_form(gate, *parts, idempotency_key="k") for _ in range(2)]
        assert len({edit.headers["x-trunkline-job-id"] for edit in edits}) == 1
        assert len(providers.asked) == 2


async def test_what_takes_too_long_goes_on(tmp_path: Path) -> None:
    async with MediaProviders() as providers:
        tables = to_media(providers.url, server={"unstreamed_wait_s": 0.5})
        tables["providers"]["slow"] = {
            "base_url": f"{providers.url}/replicate/v1",
            "api_key": "x",
            "image": {"dialect": "replicate_predictions"},
            "models": {"a/b": {"kind": "image"}},
        }
        async with gateway(tmp_path, tables) as gate:
            answer = await gate.ask(CAT | {"model": "slow/a/b"}, MAKE)
            error = (await answer.json())["error"]
            stream = answer.headers["x-trunkline-stream-id"]
            assert (answer.status, error["code"]) == (504, "job_still_running")
            assert answer.headers["x-should-retry"] == "false"
            assert f"/v1/streams/{stream}" in error["message"]
            [done] = await told(await gate.get(f"/v1/streams/{stream}"))
            assert done[1] == "image_generation.completed"
