"""Pictures and films asked for in a chat: real jobs, real sockets, providers that speak their exact wire."""

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest
from gateway import gateway
from media_gateway import deltas, draw, fetched, media_of, numbered, to_media
from media_providers import MediaProviders

from trunkline.cli.conversation import Conversation

pytestmark = pytest.mark.faults
PNG = b"\x89PNG"


async def test_a_picture_comes_in_the_stream_once(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        answer = await gate.ask(draw(stream=True, stream_options={"include_usage": True}))
        assert answer.status == 200
        events = await numbered(answer)
        media = media_of(events)
        [url] = media["outputs"]
        assert deltas(events) == [f"![image]({url})"]
        assert [number for number, _ in events] == list(range(len(events)))
        assert events[0][1]["choices"][0]["delta"] == {"role": "assistant", "content": "", "refusal": None}
        assert events[-2][1]["choices"] == []
        assert events[-2][1]["usage"]["total_tokens"] > 0
        assert events[-1][1] == "[DONE]"
        data = await fetched(gate, url)
        [item] = media["items"]
        assert data.startswith(PNG)
        assert (item["type"], item["mime_type"], item["bytes"]) == ("image", "image/png", len(data))
        assert item["width"] > 0
        assert providers.url not in json.dumps([event for _, event in events])
        assert answer.headers["x-trunkline-job-id"].startswith("image_")
        assert answer.headers["x-trunkline-provider"] == "paint"


async def test_who_stops_to_ask_on_the_command_line_stops_the_film(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        providers.polls = 10
        asking = Conversation(url=gate.url, key="", output=tmp_path, json=False).ask("paint/reel", "a dog")
        async with asyncio.TaskGroup() as group:
            task = group.create_task(asking)
            while not providers.tasks:  # noqa: ASYNC110 - the provider is told when it is told
                await asyncio.sleep(0.05)
            task.cancel()  # as asyncio does at Ctrl-C
        assert task.cancelled()
        [job] = (await (await gate.get("/v1/videos")).json())["data"]
        while job["status"] not in ("completed", "failed"):
            job = await (await gate.get(f"/v1/videos/{job['id']}")).json()
        assert job["error"]["code"] == "cancelled"
        assert providers.tasks["task-1"]["cancelled"]


async def test_a_film_comes_with_its_cover_and_progress(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        events = await numbered(await gate.ask(draw(model="paint/reel", stream=True)))
        media = media_of(events)
        assert [item["type"] for item in media["items"]] == ["video", "cover"]
        film, cover = (item["url"] for item in media["items"])
        assert media["outputs"] == [film]
        assert deltas(events) == [f"[![cover]({cover})]({film})\n\n[video]({film})"]
        lines = deltas(events, "reasoning_content")
        assert len(lines) == len(set(lines)) >= 1
        assert all(" %" in line and line.endswith("\n") for line in lines)
        assert (await fetched(gate, film))[4:8] == b"ftyp"


@pytest.mark.parametrize("model", ["paint/brush", "banana/nano", "paint/reel"])
async def test_unstreamed_it_is_one_completion(tmp_path: Path, model: str) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        answer = await gate.ask(draw(model=model, tools=[{"type": "function", "function": {"name": "f"}}]))
        body = await answer.json()
        assert (answer.status, body["object"]) == (200, "chat.completion")
        message = body["choices"][0]["message"]
        assert body["media"]["outputs"][0] in message["content"]
        assert body["choices"][0]["finish_reason"] == "stop"
        assert ("x-trunkline-cost" in answer.headers) == (model != "banana/nano")


@pytest.mark.parametrize(
    ("style", "begins"),
    [
        ("markdown", "![image](http://gateway/v1/media/img_"),
        ("bare", "http://gateway/v1/media/img_"),
        ("html", '<img src="http://gateway/v1/media/img_'),
        ("data_url", "![image](data:image/png;base64,iVBOR"),
        ("footnotes", "![image](http://gateway/v1/media/img_"),
    ],
)
async def test_the_style_is_chosen_by_header(tmp_path: Path, style: str, begins: str) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        events = await numbered(await gate.ask(draw(stream=True), x_trunkline_media_style=style))
        assert "".join(deltas(events)).startswith(begins)


async def test_images_as_objects(tmp_path: Path) -> None:
    models = {"art": {"targets": ["paint:brush"], "media_style": "images"}}
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url, models=models)) as gate:
        events = await numbered(await gate.ask(draw(model="art", n=2, stream=True)))
        [images] = deltas(events, "images")
        assert [image["image_url"]["url"] for image in images] == media_of(events)["outputs"]  # type: ignore[index]
        assert deltas(events) == []
        whole = await (await gate.ask(draw(model="art"))).json()
        assert len(whole["choices"][0]["message"]["images"]) == 1
        assert whole["choices"][0]["message"]["content"] == ""


async def test_several_pictures_are_several(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        for model in ("paint/brush", "banana/nano"):
            body = await (await gate.ask(draw(model=model, n=3))).json()
            assert len(body["media"]["outputs"]) == 3
            assert body["choices"][0]["message"]["content"].count("![image]") == 3


@pytest.mark.parametrize(
    ("prompt", "status", "code"),
    [
        ("#refused", 400, "content_filter"),
        ("#none", 502, "upstream_no_image"),
        ("#429", 429, "rate_limit_exceeded"),
        ("#500", 502, None),
        ("#cut", 502, "submit_unknown"),
        ("#html", 502, None),
    ],
)
async def test_errors_are_a_status_or_the_last_event(
    tmp_path: Path, prompt: str, status: int, code: str | None
) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        whole = await gate.ask(draw(prompt))
        error = (await whole.json())["error"]
        assert whole.status == status
        assert whole.headers["x-should-retry"] == "false"
        assert whole.headers["x-trunkline-job-id"]
        if code is not None:
            assert error["code"] == code
        events = await numbered(await gate.ask(draw(prompt, stream=True)))
        assert events[-1][1]["error"]["code"] == error["code"]
        assert "choices" not in events[-1][1]
        assert "[DONE]" not in [event for _, event in events]


async def test_what_takes_too_long_goes_on(tmp_path: Path) -> None:
    server = {"server": {"unstreamed_wait_s": 0.5}}
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url, **server)) as gate:
        answer = await gate.ask(draw(model="paint/reel"))
        error = (await answer.json())["error"]
        job_id, stream_id = answer.headers["x-trunkline-job-id"], answer.headers["x-trunkline-stream-id"]
        assert (answer.status, error["code"], answer.headers["x-should-retry"]) == (504, "job_still_running", "false")
        assert f"/v1/videos/{job_id}" in error["message"]
        events = await numbered(await gate.get(f"/v1/streams/{stream_id}"))
        assert media_of(events)["outputs"]
        video = await (await gate.get(f"/v1/videos/{job_id}")).json()
        assert (video["status"], video["progress"], video["object"]) == ("completed", 100, "video")


async def test_the_stream_is_taken_up_after_any_event(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        first = await gate.ask(draw(model="paint/reel", stream=True))
        await first.chunk()
        first.leave()
        stream_id = first.headers["x-trunkline-stream-id"]
        whole = await numbered(await gate.get(f"/v1/streams/{stream_id}"))
        assert media_of(whole)["outputs"]
        for at in range(len(whole)):
            rest = await numbered(await gate.get(f"/v1/streams/{stream_id}", last_event_id=str(at)))
            assert rest == whole[at + 1 :]
        big = await gate.ask(draw(stream=True), x_trunkline_media_style="data_url")
        pieces = await numbered(big)
        again = await gate.get(f"/v1/streams/{big.headers['x-trunkline-stream-id']}", last_event_id="1")
        assert await numbered(again) == pieces[2:]


async def test_a_repeated_call_joins_the_job(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        keyed = {"idempotency_key": "k"}
        first, second = await gate.ask(draw(stream=True), **keyed), await gate.ask(draw(stream=True), **keyed)
        assert first.headers["x-trunkline-job-id"] == second.headers["x-trunkline-job-id"]
        assert await numbered(first) == await numbered(second)
        conflict = await gate.ask(draw("a dog", stream=True), **keyed)
        assert (conflict.status, (await conflict.json())["error"]["code"]) == (409, "idempotency_conflict")
        retried = await gate.ask(draw(stream=True), x_stainless_retry_count="1")
        assert retried.headers["x-trunkline-job-id"] == first.headers["x-trunkline-job-id"]
        fresh = await gate.ask(draw(stream=True), x_stainless_retry_count="0")
        assert fresh.headers["x-trunkline-job-id"] != first.headers["x-trunkline-job-id"]
        await fresh.body()
    assert sum(asked.path.endswith("/images/generations") for asked in providers.asked) == 2


@pytest.mark.parametrize("how", ["leave", "delete", "continue"])
async def test_stopping_is_the_clients_choice(tmp_path: Path, how: str) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        providers.polls = 1000 if how != "continue" else 2
        headers = {"x_trunkline_on_disconnect": "cancel"} if how == "leave" else {}
        answer = await gate.ask(draw(model="paint/reel", stream=True), **headers)
        job_id, stream_id = answer.headers["x-trunkline-job-id"], answer.headers["x-trunkline-stream-id"]
        await answer.chunk()
        await answer.chunk()
        if how == "delete":
            assert (await gate.get(f"/v1/streams/{stream_id}", "DELETE")).status == 200
        else:
            answer.leave()
        events = await numbered(await gate.get(f"/v1/streams/{stream_id}"))
        video = await (await gate.get(f"/v1/videos/{job_id}")).json()
        if how == "continue":
            assert video["status"] == "completed"
        else:
            assert events[-1][1]["error"]["code"] == "cancelled"
            assert (video["status"], video["error"]["code"]) == ("failed", "cancelled")
            assert next(iter(providers.tasks.values()))["cancelled"]


async def test_silence_is_filled_with_empty_deltas(tmp_path: Path) -> None:
    server = {"server": {"keepalive_s": 0.2}}
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url, **server)) as gate:
        events = await numbered(await gate.ask(draw(model="paint/reel", stream=True)))
        silent = [event for number, event in events if number is None]
        assert silent
        assert all(event["choices"][0]["delta"] == {} for event in silent)
        assert {event["id"] for event in silent} == {events[0][1]["id"]}
        assert events[0][0] == 0


@pytest.mark.parametrize(
    "request_body",
    [
        draw("### Task:\nGenerate a title"),
        draw([{"type": "text", "text": "### Task:\ntags"}]),  # type: ignore[arg-type]
        draw("a cat", response_format={"type": "json_object"}),
    ],
)
async def test_side_requests_buy_nothing(tmp_path: Path, request_body: dict[str, Any]) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        answer = await gate.ask(request_body)
        error = (await answer.json())["error"]
        assert (answer.status, error["code"]) == (400, "not_a_chat_model")
        assert "task_model" in error["message"]
    assert providers.asked == []


async def test_a_picture_of_before_is_input_again(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        body = await (await gate.ask(draw())).json()
        url = body["media"]["outputs"][0]
        data = await fetched(gate, url)
        data_url = f"data:image/png;base64,{base64.b64encode(data).decode()}"
        for link in (url, data_url):
            content = [{"type": "text", "text": "blue"}, {"type": "image_url", "image_url": {"url": link}}]
            answer = await gate.ask({"model": "paint/brush", "messages": [{"role": "user", "content": content}]})
            assert answer.status == 200
            assert data in providers.asked[-1].body
        gone = [{"type": "image_url", "image_url": {"url": url.replace("img_", "img_0")[:-1]}}]
        await asyncio.sleep(0)
        assert gone
