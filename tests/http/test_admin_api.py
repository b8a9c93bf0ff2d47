"""The operators' API on a running gateway, asked as a script asks it (docs/admin-api.md)."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from admin_client import ADMIN_KEY, Admin
from gateway import chat, chunk, gateway, to_upstream
from raw_upstream import Peer, raw_upstream

USAGE = {"usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}}
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
PRICED = {"models": {"priced": {"targets": ["up:m"], "price": {"input_per_mtok": 1, "output_per_mtok": 1}}}}


def configured(url: str = "http://127.0.0.1:9/v1", **server: Any) -> dict[str, Any]:
    tables = to_upstream(url, idle_s=60)
    return tables | {"server": {"admin_key": ADMIN_KEY, **server}, "models": tables["models"] | PRICED["models"]}


async def streams(peer: Peer) -> None:
    """An answer with faults: its first chunk has no role, and it ends without a mark."""
    await peer.request()
    await peer.send(HEAD + chunk({"content": "Hello"}) + chunk({}, "stop", **USAGE))


async def marked(peer: Peer) -> None:
    """The same with its mark."""
    await peer.request()
    await peer.send(HEAD + chunk({"content": "Hello"}) + chunk({}, "stop", **USAGE) + b"data: [DONE]\n\n")


async def endless(peer: Peer) -> None:
    await peer.request()
    await peer.send(HEAD + chunk({"role": "assistant", "content": "Hello"}))
    await peer.gone()


async def test_a_key_is_made_changed_rotated_and_revoked(tmp_path: Path) -> None:
    async with gateway(tmp_path, configured()) as gate:
        admin = Admin(gate)
        made = await admin(
            "POST",
            "keys",
            {"name": "anna", "models": ["local/*"], "budget": {"limit_microusd": 5_000_000, "per": "month"}, "rpm": 60},
            status=201,
        )
        token = made.pop("key")
        assert token.startswith(made["prefix"])
        assert made["state"] == "active"
        assert (made["rpm"], made["tpm"], made["last_used_at"], made["group"]) == (60, None, None, None)
        assert made["budget"] | {"resets_at": 0} == {
            "limit_microusd": 5_000_000,
            "per": "month",
            "spent_microusd": 0,
            "reserved_microusd": 0,
            "resets_at": 0,
        }
        group = await admin("POST", "groups", {"name": "design"}, status=201)
        one = f"keys/{made['id']}"
        changed = await admin(
            "PATCH", one, {"tpm": 100, "group_id": group["id"], "budget": None, "media_style": "bare"}
        )
        assert (changed["rpm"], changed["tpm"], changed["budget"]) == (60, 100, None)
        assert changed["group"] == {"id": group["id"], "name": "design"}
        assert await admin("GET", one) == changed
        assert (await admin("GET", "groups"))["items"] == [group | {"keys": 1}]
        rotated = await admin("POST", f"{one}/rotate")
        assert rotated["key"] != token
        assert (await admin("POST", f"{one}/block"))["state"] == "blocked"
        assert [key["id"] for key in (await admin("GET", "keys?state=blocked"))["items"]] == [made["id"]]
        assert (await admin("GET", "keys?state=active"))["items"] == []
        assert (await admin("POST", f"{one}/unblock"))["state"] == "active"
        assert (await admin("PATCH", one, {"expires_at": 1}))["state"] == "expired"
        assert [key["id"] for key in (await admin("GET", "keys?state=expired"))["items"]] == [made["id"]]
        assert (await admin("GET", "keys?state=active"))["items"] == []
        await admin("DELETE", f"groups/{group['id']}", status=204)
        assert (await admin("GET", one))["group"] is None
        assert (await admin("POST", f"{one}/revoke"))["state"] == "revoked"
        assert await admin.refused("POST", f"{one}/unblock") == (400, "invalid_value", "state")


BAD = [
    ("POST", "keys", {}, (400, "missing_required_parameter", "name")),
    ("POST", "keys", {"name": " "}, (400, "invalid_value", "name")),
    ("POST", "keys", {"name": "a", "colour": 1}, (400, "invalid_value", "colour")),
    ("POST", "keys", {"name": "a", "rpm": "many"}, (400, "invalid_value", "rpm")),
    ("POST", "keys", {"name": "a", "rpm": 10**30}, (400, "invalid_value", "rpm")),
    (
        "POST",
        "keys",
        {"name": "a", "budget": {"limit_microusd": 1, "per": "week"}},
        (400, "invalid_value", "budget.per"),
    ),
    (
        "POST",
        "keys",
        {"name": "a", "budget": {"per": "day"}},
        (400, "missing_required_parameter", "budget.limit_microusd"),
    ),
    ("POST", "keys", {"name": "a", "group_id": "grp_none"}, (400, "invalid_value", "group_id")),
    ("POST", "keys", [], (400, "invalid_value", None)),
    ("POST", "keys", "\ud800", (400, "invalid_json", None)),
    ("GET", "keys/none", None, (404, "not_found", None)),
    ("PATCH", "keys/none", {"name": "b"}, (404, "not_found", None)),
    ("POST", "keys/none/rotate", None, (404, "not_found", None)),
    ("GET", "keys?limit=0", None, (400, "invalid_value", "limit")),
    ("GET", "keys?limit=201", None, (400, "invalid_value", "limit")),
    ("GET", "keys?state=new", None, (400, "invalid_value", "state")),
    ("PATCH", "groups/none", {"name": "b"}, (404, "not_found", None)),
    ("DELETE", "groups/none", None, (404, "not_found", None)),
    ("GET", "jobs/none", None, (404, "not_found", None)),
    ("POST", "jobs/none/cancel", None, (404, "not_found", None)),
    ("GET", "jobs?kind=text", None, (400, "invalid_value", "kind")),
    ("DELETE", "calls/none", None, (404, "not_found", None)),
    ("GET", "media/none", None, (404, "not_found", None)),
    ("DELETE", "media/none", None, (404, "not_found", None)),
    ("POST", "media/delete", {"ids": ["x"] * 201}, (400, "invalid_value", "ids")),
    ("GET", "traces/none", None, (404, "not_found", None)),
    ("GET", "usage?by=day", None, (400, "invalid_value", "by")),
    ("GET", "usage?from=9&to=5", None, (400, "invalid_value", "from")),
    ("GET", "usage?from=x", None, (400, "invalid_value", "from")),
    ("GET", "usage?from=0&to=1790000000&bucket=minute", None, (400, "invalid_value", "bucket")),
]


async def test_bad_input_is_named(tmp_path: Path) -> None:
    async with gateway(tmp_path, configured()) as gate:
        admin = Admin(gate)
        for method, path, body, told in BAD:
            assert await admin.refused(method, path, body) == told, (method, path, body)
        broken = await admin.raw("POST", "keys", b"{")
        assert (broken.status, (await broken.json())["error"]["code"]) == (400, "invalid_json")
        large = await admin.raw("POST", "keys", b'{"name": "' + b"a" * 70_000 + b'"}')
        assert (large.status, (await large.json())["error"]["code"]) == (413, "request_too_large")


async def test_lists_go_on_where_they_stopped(tmp_path: Path) -> None:
    async with gateway(tmp_path, configured()) as gate:
        admin = Admin(gate)
        for number in range(3):
            await admin("POST", "keys", {"name": f"k{number}"}, status=201)
        first = await admin("GET", "keys?limit=2")
        assert len({key["id"] for key in first["items"]}) == 2
        rest = await admin("GET", f"keys?limit=2&cursor={first['next']}")
        assert {key["name"] for key in first["items"] + rest["items"]} == {"k0", "k1", "k2"}
        assert rest["next"] is None


async def test_what_calls_used_is_told_everywhere(tmp_path: Path) -> None:
    async with raw_upstream(streams) as upstream, gateway(tmp_path, configured(upstream.url)) as gate:
        admin = Admin(gate)
        key = await admin("POST", "keys", {"name": "anna", "budget": {"limit_microusd": 90, "per": "day"}}, status=201)
        answer = await gate.ask(chat("priced", stream=True, max_tokens=9), authorization=f"Bearer {key['key']}")
        assert (await answer.events())[-1] == "[DONE]"
        told = await admin.once("usage", lambda told: told["totals"]["calls"])
        [series] = told["series"]
        assert (series["id"], sum(series["cost_microusd"]), sum(series["prompt_tokens"])) == ("priced", 5, 3)
        assert len(told["at"]) == len(series["calls"]) >= 24
        assert told["at"] == sorted(told["at"])
        assert told["totals"] | {"failed": 0} == {
            "calls": 1,
            "failed": 0,
            "prompt_tokens": 3,
            "completion_tokens": 2,
            "images": 0,
            "video_s": 0,
            "cost_microusd": 5,
            "estimated_calls": 0,
        }
        assert [one["name"] for one in (await admin("GET", "usage?by=key"))["series"]] == ["anna"]
        assert [one["id"] for one in (await admin("GET", "usage?by=provider&bucket=day"))["series"]] == ["up"]
        shown = await admin("GET", f"keys/{key['id']}")
        assert shown["budget"]["spent_microusd"] == 5
        assert shown["last_used_at"] > shown["created_at"] - 60
        latency = await admin("GET", "latency?model=priced&bucket=day")
        assert latency["duration_ms"]["p99"][-1] >= latency["first_event_ms"]["p50"][-1] >= 0
        repairs = await admin("GET", "repairs")
        assert [one["rule"] for one in repairs["series"]] == ["done_missing"]
        assert repairs["by_provider"] == [{"provider": "up", "rule": "done_missing", "count": 1}]
        overview = await admin("GET", "overview")
        assert (overview["today"]["calls"], overview["today"]["cost_microusd"]) == (1, 5)
        assert overview["keys"] == {"active": 1, "blocked": 0, "over_budget": 0}
        assert overview["providers"] == {"up": 1, "degraded": 0, "down": 0, "unknown": 0}
        assert {len(values) for values in overview["last_24h"].values()} == {24}
        assert sum(overview["last_24h"]["calls"]) == 1
        assert [replica["calls"] for replica in overview["replicas"]] == [0]
        up = next(one for one in (await admin("GET", "providers"))["items"] if one["name"] == "up")
        assert (up["health"]["state"], up["health"]["success_rate"], up["calls_1h"]) == ("up", 1, 1)
        assert up["credentials"] == [{"name": "literal", "set": True, "state": "ok", "until_at": None}]
        assert "sk-upstream" not in json.dumps(await admin("GET", "providers"))


async def test_the_uptime_counts_from_the_start_not_from_the_first_look(tmp_path: Path) -> None:
    async with gateway(tmp_path, configured()) as gate:
        await asyncio.sleep(0.5)
        assert (await Admin(gate)("GET", "overview"))["uptime_s"] >= 0.4


async def test_a_provider_that_refuses_our_key_is_down(tmp_path: Path) -> None:
    async def refuses(peer: Peer) -> None:
        await peer.request()
        await peer.answer(b'{"error":{"message":"no"}}', status="401 Unauthorized")

    async with raw_upstream(refuses) as upstream, gateway(tmp_path, configured(upstream.url)) as gate:
        assert (await gate.ask(chat())).status == 502
        up = next(one for one in (await Admin(gate)("GET", "providers"))["items"] if one["name"] == "up")
        assert up["health"]["state"] == "down"
        [credential] = up["credentials"]
        assert credential["state"] == "refused"
        assert credential["until_at"] > 1_700_000_000


async def test_a_keys_pattern_that_matches_no_model_is_told(tmp_path: Path) -> None:
    tables = {"models": {"priced": PRICED["models"]["priced"]}, "server": {"admin_key": ADMIN_KEY}}
    tables["providers"] = {"up": {"base_url": "http://127.0.0.1:9/v1", "chat": {"dialect": "openai_chat"}}}
    async with gateway(tmp_path, tables) as gate:
        admin = Admin(gate)
        made = await admin("POST", "keys", {"name": "a", "models": ["pricd", "priced", "up/any"]}, 201)
        told = "the pattern `pricd` matches no model that is known here: it counts once there is one"
        told += "; did you mean `priced`?"
        assert (made["models"], made["warnings"]) == (["pricd", "priced", "up/any"], [told])
        assert [key["warnings"] for key in (await admin("GET", "keys"))["items"]] == [[told]]
        changed = await admin("PATCH", f"keys/{made['id']}", {"models": ["priced"]})
        assert changed["warnings"] == []


@pytest.mark.parametrize("resume", [{}, {"x_trunkline_resume": "true"}])
async def test_a_call_in_flight_is_seen_and_ended(tmp_path: Path, resume: dict[str, str]) -> None:
    async with raw_upstream(endless) as upstream, gateway(tmp_path, configured(upstream.url)) as gate:
        admin = Admin(gate)
        answer = await gate.ask(chat(stream=True), x_request_id="mine/1", **resume)
        seen = b""
        while b"Hello" not in seen:
            seen += await answer.chunk()
        [call] = (await admin("GET", "calls"))["items"]
        assert (call["id"], call["state"], call["provider"], call["model"]) == ("mine/1", "streaming", "up", "m")
        assert (call["completion_tokens"], call["key"], call["kind"]) == (2, None, "text")
        assert (call["stream_id"] is not None) == bool(resume)
        assert (await admin("GET", "overview"))["calls_in_flight"] == 1
        assert await admin("DELETE", "calls/mine%2F1", status=202) == {"id": "mine/1", "cancelled": True}
        await upstream.peers[0].closed.wait()
        body = (await answer.body()).decode()
        assert '"code":"cancelled"' in body
        assert "[DONE]" not in body
        await admin.once("calls", lambda told: told["items"] == [])
        assert await admin.refused("DELETE", "calls/mine%2F1") == (404, "not_found", None)
        used = (await admin.once("usage", lambda told: told["totals"]["calls"]))["totals"]
        assert (used["calls"], used["failed"], used["estimated_calls"]) == (1, 0, 1)


async def test_an_unstreamed_call_is_ended_with_a_status(tmp_path: Path) -> None:
    async with raw_upstream(endless) as upstream, gateway(tmp_path, configured(upstream.url)) as gate:
        admin = Admin(gate)
        answer = await gate.send("POST", "/v1/chat/completions", json.dumps(chat()).encode(), x_request_id="r1")
        await admin.once("calls", lambda told: any(call["provider"] for call in told["items"]))
        await admin("DELETE", "calls/r1", status=202)
        await answer.read_head()
        assert (answer.status, (await answer.json())["error"]["code"]) == (409, "cancelled")


async def test_a_capture_is_inspected(tmp_path: Path) -> None:
    async with gateway(tmp_path, configured()) as gate:
        admin = Admin(gate)
        capture = b'data:{"choices":[{"delta":{"content":"Hi"},"index":0}]}\n\ndata: [DONE]\n\n'
        answer = await admin.raw("POST", "inspect", capture, content_type="application/octet-stream")
        told = await answer.json()
        assert (answer.status, told["verdict"], told["text"]) == (200, 1, "Hi")
        assert len(told["clients"]) == 8
        assert "".join(row["raw"] for row in told["rows"]).startswith("data:{")
        nothing = await (await admin.raw("POST", "inspect", b"")).json()
        assert nothing["verdict"] == 2
        large = await admin.raw("POST", "inspect", b"x" * (8 * 1024 * 1024 + 1))
        assert (large.status, (await large.json())["error"]["code"]) == (413, "request_too_large")


async def test_a_call_that_is_to_be_traced_shows_what_the_provider_sent(tmp_path: Path) -> None:
    async with raw_upstream(marked) as upstream, gateway(tmp_path, configured(upstream.url)) as gate:
        admin = Admin(gate)
        await (await gate.ask(chat(stream=True), x_request_id="plain")).events()
        assert await admin.refused("GET", "traces/plain") == (404, "not_found", None)
        await (await gate.ask(chat(stream=True), x_request_id="r/1", x_trunkline_trace="true")).events()
        trace = await admin("GET", "traces/r%2F1")
        assert (trace["request_id"], trace["model"], trace["provider"], trace["status"]) == ("r/1", "m", "up", 200)
        assert (trace["content_type"], trace["ended"], trace["truncated"]) == ("text/event-stream", "completed", False)
        rows = trace["inspection"]["rows"]
        assert rows[0]["raw"] == chunk({"content": "Hello"}).decode().strip()
        assert "role_missing" in [trace["inspection"]["departures"][at]["rule"] for at in rows[0]["departures"]]
        assert rows[0]["t_ms"] >= 0
        assert trace["inspection"]["text"] == "Hello"
