"""Does the load generator notice what is wrong? An upstream that lies in one known way, and what must be said of it."""

import json
import socket
import subprocess
import sys
import threading

from servers import STREAMLOAD

CHUNKS = 3
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
ROLE = 'data: {"choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]}\n\n'
FINISH = 'data: {"choices":[{"index":0,"delta":{},"finish_reason": "stop"}]}\n\n'
DONE = "data: [DONE]\n\n"
ERROR = 'data: {"error":{"message":"broken"}}\n\n'


def delta(*numbers: int) -> str:
    """Write one chunk that holds so many stamped pieces."""
    pieces = "".join(f"~{number:04x}.{1:016x}" for number in numbers)
    return 'data: {"choices":[{"index":0,"delta":{"content":"' + pieces + '"},"finish_reason":null}]}\n\n'


WHOLE = ROLE + delta(0) + delta(1) + delta(2) + FINISH + DONE
STREAMS = {
    "": (
        WHOLE,
        ": keep-alive\n\n" + WHOLE.replace("\n\n", "\r\n\r\n"),
        ROLE + delta(0, 1, 2) + FINISH + DONE,
        ROLE.replace("data: ", "data:") + delta(0) + delta(1, 2) + FINISH + DONE,
    ),
    "chunks_missing": (ROLE + delta(0) + delta(1) + FINISH + DONE,),
    "out_of_order": (
        ROLE + delta(0) + delta(2) + delta(1) + FINISH + DONE,
        ROLE + delta(0) + delta(0) + delta(1) + delta(2) + FINISH + DONE,
        WHOLE + FINISH,
    ),
    "no_finish": (ROLE + delta(0) + delta(1) + delta(2) + DONE, WHOLE.replace(FINISH, FINISH * 2)),
    "no_done": (ROLE + delta(0) + delta(1) + delta(2) + FINISH,),
    "error_event": (ROLE + delta(0) + ERROR,),
}


def framed(stream: str, piece: int) -> bytes:
    """Cut a stream into HTTP chunks of so many bytes."""
    data = stream.encode()
    pieces = (data[at : at + piece] for at in range(0, len(data), piece))
    return HEAD + b"".join(b"%x;cut\r\n%b\r\n" % (len(part), part) for part in pieces) + b"0\r\nTrailer: 1\r\n\r\n"


def cases() -> list[tuple[str, bytes]]:
    """List what must be said, and of which answer."""
    streams = [(fault, framed(text, cut)) for fault, texts in STREAMS.items() for text in texts for cut in (7, 5000)]
    head_close = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    sized = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(WHOLE)
    return [
        *streams,
        ("", sized + WHOLE.encode()),
        ("", head_close + WHOLE.encode()),
        ("", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + framed(WHOLE, 100)),
        ("no_done", head_close + WHOLE.removesuffix(DONE).encode()),
        ("cut", framed(WHOLE, 100)[:-60]),
        ("bad_status", b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 2\r\n\r\n{}"),
        ("not_connected", b""),
    ]


def serve(listener: socket.socket, answer: bytes) -> None:
    """Give each connection this answer byte by byte at first, then the rest, and close."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            connection.recv(65536)
            for at in range(min(len(answer), 300)):
                connection.sendall(answer[at : at + 1])
            connection.sendall(answer[300:])


def load(port: int) -> dict[str, int]:
    """Let the load generator ask once; gives the faults it found."""
    argv = [STREAMLOAD, "load", "--port", port, "--model", "x", "--requests", 1, "--chunks", CHUNKS]
    said = subprocess.run(list(map(str, argv)), capture_output=True, check=True, timeout=20).stdout
    faults: dict[str, int] = json.loads(said)["faults"]
    return faults


def judge(answer: bytes) -> dict[str, int]:
    """Let the load generator read this answer once."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener, answer))
        thread.start()
        faults = load(listener.getsockname()[1])
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
    return faults


def nobody() -> dict[str, int]:
    """Let the load generator ask where nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return load(bound.getsockname()[1])


def main() -> int:
    """Try all; exit 1 when something went unnoticed."""
    wrong = 0
    if (said := nobody()) != {"not_connected": 1}:
        wrong += 1
        print(f"nobody listens, and it was {said}")
    for fault, answer in cases():
        said = judge(answer)
        if said != ({fault: 1} if fault else {}):
            wrong += 1
            print(f"must be {fault or 'no fault'}, was {said}: {answer[-300:]!r}")
    print(f"{len(cases()) + 1 - wrong} of {len(cases()) + 1} judged rightly")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
