"""What runs behind the calls: which failures end the process, and which not. Real ones: `faults/test_failing.py`."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Never

import pytest
from gateway import chat, chunk, gateway, to_upstream
from raw_upstream import Peer, raw_upstream

from trunkline.app_background import Background, Work
from trunkline.calls.chat import ChatCall
from trunkline.calls.media_retention import MediaRetention
from trunkline.config.load import Loaded

pytestmark = pytest.mark.faults


async def broken() -> None:
    raise ValueError("odd")


async def cancelled_inside() -> None:
    raise asyncio.CancelledError


async def waiting() -> None:
    await asyncio.get_running_loop().create_future()


async def done() -> None:
    pass


async def logged(caplog: pytest.LogCaptureFixture, words: str) -> None:
    async with asyncio.timeout(60):
        while not any(words in message for message in caplog.messages):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("work", [broken, cancelled_inside])
async def test_a_failure_is_said_once_and_ends_no_neighbour(work: Work, caplog: pytest.LogCaptureFixture) -> None:
    background = Background()
    async with asyncio.TaskGroup() as group:
        neighbour = group.create_task(background.keep(waiting))
        await group.create_task(background.keep(work))
        assert background.failed
        assert not neighbour.done()
        neighbour.cancel()
    [record] = caplog.records
    assert record.message == f"{work.__qualname__} has failed; this process ends, to be started again"
    assert record.exc_info is not None


async def test_what_is_done_or_told_to_end_has_not_failed() -> None:
    background = Background()
    await background.keep(done)
    task = asyncio.ensure_future(background.keep(waiting))
    await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()
    assert not background.failed


async def answers(peer: Peer) -> None:
    while True:
        await peer.request()
        await peer.answer(chunk({"content": "x"}, "stop") + b"data: [DONE]\n\n", "content-type: text/event-stream")


async def test_one_stream_that_breaks_at_its_end_ends_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    close = ChatCall.close

    async def closed(call: ChatCall, *args: object) -> None:
        await close(call, *args)  # type: ignore[arg-type]
        raise ValueError("odd")

    async with raw_upstream(answers) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        monkeypatch.setattr(ChatCall, "close", closed)
        (await gate.ask(chat(stream=True), x_trunkline_resume="true")).leave()
        await logged(caplog, "broke at its end")
        monkeypatch.undo()
        answer = await gate.ask(chat(stream=True), x_trunkline_resume="true")
        assert (await answer.body()).endswith(b"data: [DONE]\n\n")
        assert not gate.application.failed


async def test_a_configuration_that_breaks_its_reader_ends_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def again() -> Loaded:
        raise ValueError("odd")

    async with gateway(tmp_path, to_upstream("http://127.0.0.1:9/v1"), again) as gate:
        assert gate.application.watch is not None
        gate.application.watch.ask()
        await logged(caplog, "the changed configuration is not used, the former one stays")
        assert not gate.application.failed


async def test_media_that_cannot_be_deleted_end_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def refused(_retention: MediaRetention) -> Never:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(MediaRetention, "prune", refused)
    async with gateway(tmp_path, to_upstream("http://127.0.0.1:9/v1")) as gate:
        await logged(caplog, "media that have expired cannot be deleted now: [Errno 13] Permission denied")
        assert not gate.application.failed
