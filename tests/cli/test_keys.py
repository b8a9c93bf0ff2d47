"""`trunkline keys` and `trunkline groups`, on a real database, beside a running gateway and without one."""

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from gateway import chat, gateway, to_upstream

from trunkline.cli.main import trunkline


def run(data_dir: Path, *arguments: str) -> Result:
    return CliRunner().invoke(trunkline, [*arguments, "--data-dir", str(data_dir)])


def read(data_dir: Path, *arguments: str) -> Any:
    result = run(data_dir, *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_key_with_everything_is_made_changed_and_shown(tmp_path: Path) -> None:
    group = read(tmp_path, "groups", "create", "--name", "team", "--budget-usd", "50", "--per", "month")
    made = read(
        tmp_path, "keys", "create", "--name", "anna", "--models", "gpt-*, local/*", "--budget-usd", "2.5",
        "--per", "day", "--rpm", "60", "--tpm", "1000", "--ipm", "5", "--streams", "3", "--group", "team",
        "--expires", "2031-01-31", "--metadata", "cost_centre=7", "--media-style", "bare", "--cache", "--record",
    )  # fmt: skip
    assert made["key"].startswith("sk-tl-")
    assert made["models"] == ["gpt-*", "local/*"]
    assert made["budget"] == {"total": None, "day": 2_500_000, "month": None}
    assert made["rates"] == {"requests": 60, "tokens": 1000, "images": 5, "streams": 3}
    assert made["group"]["id"] == group["id"]
    assert made["expires_ms"] == 1_927_584_000_000
    assert (made["metadata"], made["media_style"], made["cache"], made["record"]) == (
        {"cost_centre": "7"},
        "bare",
        True,
        True,
    )
    key_id = made["id"]
    changed = read(tmp_path, "keys", "change", key_id, "--budget-usd", "20", "--rpm", "none", "--expires", "none")
    assert changed["budget"] == {"total": 20_000_000, "day": 2_500_000, "month": None}
    assert changed["rates"] == {"requests": None, "tokens": 1000, "images": 5, "streams": 3}
    assert changed["expires_ms"] is None
    shown = run(tmp_path, "keys", "show", key_id)
    assert run(tmp_path, "keys", "change", key_id).stdout == shown.stdout
    assert "spent (day): $0.00 of $2.50, 0 calls" in shown.stdout
    assert "media style: bare\ncache: yes\nrecord: yes\ncost_centre: 7\n" in shown.stdout
    assert made["key"] not in shown.output
    listed = read(tmp_path, "groups", "list")
    assert [(one["name"], one["keys"]) for one in listed] == [("team", 1)]


@pytest.mark.parametrize(
    ("tables", "closes"),
    [
        ("", True),
        ("[keys]\nrequired = false", False),
        ("[keys]\nrequired = true", False),
        ("[server]\nlisten = '0.0.0.0:4000'", False),
    ],
)
def test_the_first_key_says_that_calls_need_one_now(tmp_path: Path, tables: str, *, closes: bool) -> None:
    config = tmp_path / "trunkline.toml"
    config.write_text(tables)
    making = ("keys", "create", "--config", str(config), "--name")
    first, second = (run(tmp_path, *making, name) for name in ("anna", "bert"))
    assert ("from now on every call needs a key" in first.stderr) is closes
    assert len(first.stderr.splitlines()) == 1 + closes
    assert len(first.stdout.splitlines()) == len(second.stderr.splitlines()) == 1


def test_of_the_first_key_tools_are_told_nothing_but_the_key(tmp_path: Path) -> None:
    result = run(tmp_path, "keys", "create", "--name", "anna", "--json")
    assert (json.loads(result.stdout)["name"], result.stderr) == ("anna", "")


def test_a_key_that_has_expired_is_shown_so(tmp_path: Path) -> None:
    read(tmp_path, "keys", "create", "--name", "anna", "--expires", "30d")
    database = sqlite3.connect(tmp_path / "trunkline.db")
    with database:
        database.execute("UPDATE keys SET expires_ms = 1")
    database.close()
    assert "  expired  " in run(tmp_path, "keys", "list").stdout


def test_states_of_keys_and_groups(tmp_path: Path) -> None:
    read(tmp_path, "groups", "create", "--name", "team")
    made = read(tmp_path, "keys", "create", "--name", "anna", "--group", "team")
    key_id = made["id"]
    assert "is blocked" in run(tmp_path, "keys", "block", key_id).stdout
    assert "is active" in run(tmp_path, "keys", "unblock", key_id).stdout
    assert read(tmp_path, "keys", "rotate", key_id)["key"] != made["key"]
    assert "is blocked" in run(tmp_path, "groups", "block", "team").stdout
    assert read(tmp_path, "keys", "show", key_id)["group"]["state"] == "blocked"
    assert "is gone" in run(tmp_path, "groups", "delete", "team").stdout
    assert "is revoked" in run(tmp_path, "keys", "revoke", key_id).stdout
    refused = run(tmp_path, "keys", "unblock", key_id)
    assert (refused.exit_code, refused.stderr) == (1, "trunkline: a revoked key stays revoked: make a new one\n")


@pytest.mark.parametrize(
    ("option", "text", "told"),
    [
        ("--budget-usd", "lots", "--budget-usd takes dollars, such as 12.50, or `none`; it is 'lots'"),
        ("--budget-usd", "-1", "--budget-usd takes dollars"),
        ("--budget-usd", "nan", "--budget-usd takes dollars"),
        ("--rpm", "1.5", "--rpm takes a whole number from 1 on, or `none`; it is '1.5'"),
        ("--rpm", "0", "--rpm takes a whole number from 1 on, or `none`; it is '0'"),
        ("--expires", "soon", "--expires takes 30d, 12h, 90m, 2027-01-31"),
        ("--per", "day", "--per says for which time --budget-usd is: name both"),
        ("--metadata", "x", "--metadata takes NAME=VALUE; it is 'x'"),
        ("--media-style", "loud", "--media-style takes markdown, "),
    ],
)
def test_wrong_values_are_named(tmp_path: Path, option: str, text: str, told: str) -> None:
    result = run(tmp_path, "keys", "create", "--name", "x", option, text)
    assert result.exit_code == 2
    assert told in " ".join(result.stderr.replace("│", " ").split())


def test_a_key_that_has_expired_already_is_not_made(tmp_path: Path) -> None:
    result = run(tmp_path, "keys", "create", "--name", "x", "--expires", "2020-01-31")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "the key would have expired already: its end must be in the future" in result.stderr


def test_an_unknown_group_is_named(tmp_path: Path) -> None:
    result = run(tmp_path, "keys", "create", "--name", "x", "--group", "none-such")
    assert result.exit_code == 1
    assert "there is no group 'none-such': `trunkline groups list` shows all" in result.stderr


async def test_a_running_gateway_sees_keys_within_five_seconds(tmp_path: Path) -> None:
    tables = to_upstream("http://127.0.0.1:9/v1") | {"keys": {"required": True}}
    async with gateway(tmp_path, tables) as gate:

        async def status(token: str, wanted: int) -> int:
            got = 0
            for _ in range(200):
                got = (await gate.ask(chat(n=0), authorization=f"Bearer {token}")).status
                if got == wanted:
                    break
                await asyncio.sleep(0.1)
            return got

        made = await asyncio.to_thread(read, tmp_path, "keys", "create", "--name", "anna")
        assert await status(made["key"], 400) == 400
        await asyncio.to_thread(run, tmp_path, "keys", "block", made["id"])
        assert await status(made["key"], 401) == 401
        await asyncio.to_thread(run, tmp_path, "keys", "unblock", made["id"])
        assert await status(made["key"], 400) == 400
        rotated = await asyncio.to_thread(read, tmp_path, "keys", "rotate", made["id"])
        assert await status(made["key"], 401) == 401
        assert await status(rotated["key"], 400) == 400


def test_a_pattern_that_matches_no_model_is_told_and_taken(tmp_path: Path) -> None:
    made = run(tmp_path, "keys", "create", "--name", "a", "--models", "local/txet,local/*", "--json")
    key = json.loads(made.stdout)
    assert key["models"] == ["local/txet", "local/*"]
    told = "the pattern `{}` matches no model that is known here: it counts once there is one"
    assert made.stderr.startswith(f"warning: {told.format('local/txet')}; did you mean `local/text`")
    assert len(made.stderr.splitlines()) == 1
    changed = run(tmp_path, "keys", "change", key["id"], "--models", "zzz*")
    assert changed.stderr == f"warning: {told.format('zzz*')}\n"
    assert run(tmp_path, "keys", "change", key["id"], "--rpm", "7").stderr == ""
