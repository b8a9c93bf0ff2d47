"""Runs one huge event through the whole line in a process of its own; prints by how many bytes memory grew at most."""

import resource
import sys
from collections.abc import Iterator
from pathlib import Path

from trunkline.core.chat import ChatRequest
from trunkline.core.events import Ended
from trunkline.core.notes import Notes
from trunkline.dialects import CHAT_DIALECTS
from trunkline.ingress.inline_media import InlineMedia
from trunkline.ingress.openai_chat import ChunkEncoder
from trunkline.pipeline import ChatLine

READ_BYTES = 64 * 1024
OPENAI = "openai_chat"
AROUND = {
    "text": (OPENAI, 'data: {"choices":[{"index":0,"delta":{"content":"', '"},"finish_reason":"stop"}]}\n\n'),
    "picture": (
        OPENAI,
        'data: {"choices":[{"index":0,"delta":{"images":[{"image_url":{"url":"data:image/png;base64,',
        '"}}]},"finish_reason":"stop"}]}\n\n',
    ),
    "body": (OPENAI, '{"choices":[{"index":0,"message":{"content":"', '"},"finish_reason":"stop"}]}'),
    "pretty": (
        OPENAI,
        'data: {\n"choices":[{"index":0,"delta":{"content":"',
        '"},"finish_reason":"stop"}]\n}\n\n',
    ),
    "pretty to its end": (
        OPENAI,
        'data: {\n"choices":[{"index":0,"delta":{"content":"',
        '"},"finish_reason":"stop"}]}\n\n',
    ),
    "unasked": (
        OPENAI,
        'data: {"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"',
        '"}}]},"finishReason":"STOP"}]}\n\n',
    ),
    "parts": (
        "gemini_chat",
        'data: {"candidates":[{"content":{"parts":[{"text":"',
        '"}]},"finishReason":"STOP"}]}\n\n',
    ),
    "lines": ("ollama_chat", '{"model":"m","message":{"content":"', '"},"done":true,"done_reason":"stop"}\n'),
    "output": (
        "dashscope_chat",
        'data:{"output":{"choices":[{"message":{"content":"',
        '"},"finish_reason":"stop"}]}}\n\n',
    ),
    "response": ("workers_ai_chat", 'data: {"response":"', '"}\n\ndata: [DONE]\n\n'),
    "plain text": ("replicate_stream", "event: output\ndata: ", "\n\nevent: done\ndata: {}\n\n"),
}
"""A dialect, and what stands before and behind the text of its event."""


def reads(shape: str, size: int) -> Iterator[bytes]:
    _, begin, end = AROUND[shape]
    yield begin.encode()
    for _ in range((size - len(begin) - len(end)) // READ_BYTES):
        yield b"iVBORw0K" * (READ_BYTES // 8)
    yield end.encode()


def main(shape: str, size: int) -> None:
    line = ChatLine(CHAT_DIALECTS[AROUND[shape][0]], Notes(), salt="s")
    inline, encoder = InlineMedia(), ChunkEncoder(ChatRequest("m", {}, stream=True), id="x", created=1)
    before = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    written = 0
    for data in reads(shape, size):
        written += sum(map(len, encoder.encode(inline.feed(line.feed(data)))))
    events = line.close()
    assert isinstance(events[-1], Ended)
    assert written > size * 0.99
    print(peak_bytes() - before)


def peak_bytes() -> int:
    """The most memory this process has held. (`ru_maxrss` would begin with the parent's.)"""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
