import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from trunkline.local import supervisor
from trunkline.local.supervisor import Address, ChildUnavailableError, SupervisedChild

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def _small_child_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(HERE))


@contextlib.asynccontextmanager
async def supervised(behaviour: str, marks: Path | str = "") -> AsyncIterator[SupervisedChild]:
    child = SupervisedChild("local/small", "small_child", {"behaviour": behaviour, "marks": str(marks)})
    async with asyncio.TaskGroup() as group:
        group.create_task(child.run())
        yield child
        child.stop()


async def ask(address: Address) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(address.base_url).port)
    writer.write(address.key.encode())
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer.decode()


def proc(child: SupervisedChild, what: str) -> bytes:
    return Path(f"/proc/{child.pid}/{what}").read_bytes()


async def another(child: SupervisedChild, before: Address) -> Address:
    """The next life's address; the parent learns of a death a moment later."""
    async with asyncio.timeout(60):
        while (address := await child.address()) == before:  # noqa: ASYNC110 - the child tells nobody of its death
            await asyncio.sleep(0.01)
    return address


def alive(pid: int) -> bool:
    """Whether the process runs; a zombie, which nobody reaps in some containers, does not."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 60
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not alive(pid)


async def test_the_first_address_starts_the_process_and_all_share_it() -> None:
    async with supervised("serve") as child:
        assert child.pid is None
        addresses = await asyncio.gather(*(child.address() for _ in range(5)))
        assert len(set(addresses)) == 1
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/v1", addresses[0].base_url)
        assert await ask(addresses[0]) == f"pid {child.pid}"


async def test_start_is_idempotent_and_comes_before_the_first_address(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    async with supervised("serve", marks) as child:
        child.start()
        child.start()
        await child.address()
        child.start()
        await asyncio.sleep(0.1)
        assert marks.read_text() == f"{child.pid}\n"


async def test_the_key_is_in_no_repr_and_not_on_the_command_line() -> None:
    async with supervised("serve") as child:
        address = await child.address()
        assert address.key not in repr(address)
        assert len(bytes.fromhex(address.key)) == 32
        assert address.key.encode() not in proc(child, "cmdline") + proc(child, "environ")


async def test_a_killed_process_is_started_again_with_a_new_key() -> None:
    async with supervised("serve") as child:
        for _ in range(2):
            before, pid = await child.address(), child.pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            after = await another(child, before)
            assert await ask(after) == f"pid {child.pid}"
            assert after.key != before.key


async def test_a_refusal_is_the_message() -> None:
    async with supervised("refuse") as child:
        with pytest.raises(ChildUnavailableError) as caught:
            await child.address()
        assert str(caught.value) == "local/small cannot start: there are no weights on this machine."


async def test_the_end_of_standard_error_is_the_message_of_a_crash_at_start() -> None:
    async with supervised("raise") as child:
        with pytest.raises(ChildUnavailableError) as caught:
            await child.address()
        assert str(caught.value).startswith("local/small cannot start: ")
        assert str(caught.value).endswith("RuntimeError: the engine burst (exit status 1)")
        assert len(str(caught.value)) < supervisor.STDERR_KEPT_BYTES + 100


async def test_a_missing_module_is_named() -> None:
    child = SupervisedChild("local/none", "no_such_module", {})
    async with asyncio.TaskGroup() as group:
        group.create_task(child.run())
        with pytest.raises(ChildUnavailableError, match="No module named no_such_module"):
            await child.address()
        child.stop()


async def test_a_process_that_says_something_else_is_ended() -> None:
    async with supervised("garbage") as child:
        with pytest.raises(ChildUnavailableError, match=r"cannot start: \(exit status -9\)"):
            await child.address()


async def test_a_process_that_never_gets_ready_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "START_S", 0.01)
    async with supervised("mute") as child:
        with pytest.raises(ChildUnavailableError, match=r"not ready within 0\.01 s"):
            await child.address()


async def test_a_failed_start_is_tried_again_on_demand_after_the_back_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = tmp_path / "marks"
    monkeypatch.setattr(supervisor, "BACK_OFF_S", (0.0, 3600.0))
    async with supervised("refuse", marks) as child:
        for _ in range(5):
            with pytest.raises(ChildUnavailableError):
                await child.address()
        assert len(marks.read_text().split()) == 2


async def test_a_start_that_succeeds_the_second_time_answers(tmp_path: Path) -> None:
    async with supervised("fail_once", tmp_path / "marks") as child:
        with pytest.raises(ChildUnavailableError, match="not the first time"):
            await child.address()
        assert await ask(await child.address()) == f"pid {child.pid}"


async def test_stop_ends_the_process_and_what_it_started(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    async with supervised("grandchild", marks) as child:
        await child.address()
    assert child.pid is None
    for pid in marks.read_text().split():
        assert gone(int(pid))
    with pytest.raises(ChildUnavailableError, match="going down"):
        await child.address()


async def test_stop_before_the_task_has_begun_ends_it() -> None:
    child = SupervisedChild("local/small", "small_child", {"behaviour": "serve"})
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(child.run())
        child.stop()
    with pytest.raises(ChildUnavailableError, match="going down"):
        await child.address()


async def test_stop_while_others_wait_tells_them() -> None:
    async with supervised("mute") as child:
        waiting = asyncio.gather(child.address(), child.address(), return_exceptions=True)
        await asyncio.sleep(0.05)
        child.stop()
        assert [type(outcome) for outcome in await waiting] == [ChildUnavailableError] * 2


async def test_one_that_gives_up_waiting_does_not_disturb_the_others() -> None:
    async with supervised("serve") as child:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await child.address()
        assert await ask(await child.address()) == f"pid {child.pid}"


PARENT = """
import asyncio, signal
from trunkline.local.supervisor import SupervisedChild

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored, where a shell started the tests in the background

async def main():
    child = SupervisedChild("local/small", "small_child", {"behaviour": "serve"})
    async with asyncio.TaskGroup() as group:
        group.create_task(child.run())
        await child.address()
        print(child.pid, flush=True)
        await asyncio.sleep(3600)

asyncio.run(main())
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_child_dies_with_its_parent_however_that_ends(how: signal.Signals) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    with parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert alive(pid)
        parent.send_signal(how)
    assert gone(pid)


def test_a_child_whose_threads_stand_still_dies_with_its_parent_too() -> None:
    """As while native code loads weights and lets no other thread run: then Linux must end it."""
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    with parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        os.kill(pid, signal.SIGSTOP)
        parent.kill()
    assert gone(pid)


def test_the_pipe_alone_ends_the_child() -> None:
    """What holds where Linux's parent-death signal is not."""
    process = subprocess.Popen([sys.executable, "-m", "small_child"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"behaviour": "serve", "key": "k"}).encode() + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline()).keys() == {"port"}
        process.stdin.close()
        assert process.wait(60) == 0
