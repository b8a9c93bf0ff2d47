"""`trunkline replay`: a capture is served as it was, faults, reads and timing kept."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from corpus import CORPUS
from gateway import Answer, chat, gateway, to_upstream

from trunkline.cli.replayed import Replay
from trunkline.cli.server import bind
from trunkline.inspection import recording
from trunkline.inspection.paste import unwrap

FAULTY = next((CORPUS / "openai_chat" / "capture_relay_zero_usage").glob("upstream.*"))
READS = [(0.0, b"data: {"), (0.1, b'"a":1}\n\n'), (0.3, b"data: [DONE]\n\n")]


def recorded(**facts: str) -> bytes:
    told = {"status": "200", "header-content-type": "text/event-stream; charset=utf-8", "header-x-id": "7", **facts}
    return b"".join(recording.encode(told, READS))


@asynccontextmanager
async def replaying(data: bytes, speed: float = 1) -> AsyncIterator[int]:
    opened = bind("127.0.0.1:0")
    async with asyncio.TaskGroup() as group:
        task = group.create_task(Replay(unwrap(data), speed).serve(opened))
        yield opened.getsockname()[1]
        task.cancel()


async def ask(port: int, request: bytes) -> Answer:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = Answer(reader, writer)
    await answer.read_head()
    return answer


POST = b"POST /any/path HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}"


async def test_the_reads_come_as_they_were_recorded_with_their_timing() -> None:
    async with replaying(recorded()) as port:
        begun = asyncio.get_running_loop().time()
        answer = await ask(port, POST)
        assert answer.headers["x-id"] == "7"
        assert [await answer.chunk() for _ in READS] == [data for _, data in READS]
        assert asyncio.get_running_loop().time() - begun >= 0.25
        assert await answer.chunk() == b""
        answer.writer.write(POST)
        again = Answer(answer.reader, answer.writer)
        await again.read_head()
        assert await again.chunk() == READS[0][1]
        answer.leave()


async def test_a_broken_answer_breaks_again() -> None:
    async with replaying(recorded(ended="broken"), speed=0) as port:
        answer = await ask(port, POST)
        for _ in READS:
            await answer.chunk()
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await answer.chunk()
        answer.leave()


async def test_status_and_headers_of_a_dump() -> None:
    head = b"Retry-After: 3\r\nContent-Length: 12\r\nContent-Type: application/json\r\n\r\n"
    dump = b"HTTP/1.1 429 Too Many Requests\r\n" + head + b'{"error":{}}'
    async with replaying(dump) as port:
        answer = await ask(port, b"GET /v1/models HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        assert answer.status == 429
        assert answer.headers["retry-after"] == "3"
        assert "content-length" not in answer.headers
        assert await answer.body() == b'{"error":{}}'
        assert await answer.reader.read() == b""
        answer.leave()


@pytest.mark.parametrize(
    ("data", "content_type"),
    [
        (b'{"choices":[]}', "application/json"),
        (b"data: {}\n\n", "text/event-stream; charset=utf-8"),
        (b'{"a":1}\n{"a":2}\n', "text/event-stream; charset=utf-8"),
        (b"", "text/event-stream; charset=utf-8"),
    ],
)
async def test_a_type_is_told_by_the_body(data: bytes, content_type: str) -> None:
    async with replaying(data) as port:
        answer = await ask(port, POST)
        assert answer.headers["content-type"] == content_type
        assert await answer.body() == data
        answer.leave()


async def test_requests_in_chunks_and_nonsense() -> None:
    async with replaying(b"data: [DONE]\n\n") as port:
        answer = await ask(port, b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
        assert await answer.body() == b"data: [DONE]\n\n"
        answer.leave()
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"nonsense" * 10_000)
        writer.transport.abort()
        again = await ask(port, POST)
        assert again.status == 200
        again.leave()


async def test_the_gateway_reads_a_replayed_capture(tmp_path: Path) -> None:
    wanted = (FAULTY.parent / "client.sse").read_bytes()
    async with replaying(FAULTY.read_bytes()) as port:
        async with gateway(tmp_path, to_upstream(f"http://127.0.0.1:{port}/v1")) as gate:
            asked = chat("asked-for", stream=True, stream_options={"include_usage": True})
            assert await (await gate.ask(asked)).body() == wanted


def test_the_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "trunkline", "replay", str(FAULTY), "--listen"]
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # ignored, where a shell started us in the background
    running = subprocess.Popen(
        [*command, "127.0.0.1:0"],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heard,  # noqa: PLW1509 - no threads run
    )
    assert running.stderr is not None
    said = running.stderr.readline()
    assert f"replaying {FAULTY} (1740 bytes) on http://127.0.0.1:" in said
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=120)
    assert running.returncode == 130
    wrong = subprocess.run([*command, "nowhere"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert wrong.stdout == ""
    assert wrong.stderr.count("\n") == 1
    assert "cannot listen on nowhere" in wrong.stderr
