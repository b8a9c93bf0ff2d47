"""Who may use the operators' API: sessions, the open mode of this machine, the admin key."""

import json
from pathlib import Path
from typing import Any

from admin_client import ADMIN_KEY
from gateway import Answer, Gateway, gateway

HERE = "127.0.0.1:4000"
WITH_KEY = {"server": {"admin_key": ADMIN_KEY}}


async def ask(gate: Gateway, method: str, path: str, body: Any = None, **headers: str) -> Answer:
    data = b"" if body is None else json.dumps(body).encode()
    answer = await gate.send(method, f"/admin/api/{path}", data, **headers)
    await answer.read_head()
    return answer


async def log_in(gate: Gateway, **headers: str) -> tuple[dict[str, str], dict[str, Any]]:
    """Log in with the key; gives the headers of whoever has the session, and what was told."""
    answer = await ask(gate, "POST", "session", {"admin_key": ADMIN_KEY}, **headers)
    assert answer.status == 200
    told = await answer.json()
    cookie = answer.headers["set-cookie"].partition(";")[0]
    return {"cookie": cookie, "x_trunkline_csrf": told["csrf"], **headers}, told


async def test_this_machine_has_a_session_without_a_key(tmp_path: Path) -> None:
    async with gateway(tmp_path, {}) as gate:
        refused = await ask(gate, "GET", "keys", host=HERE)
        assert refused.status == 401
        assert "set TRUNKLINE_ADMIN_KEY" in (await refused.json())["error"]["message"]
        answer = await ask(gate, "GET", "session", host=HERE)
        told = await answer.json()
        assert (told["authenticated"], told["open"], told["admin_key_set"]) == (True, True, False)
        cookie, *attributes = answer.headers["set-cookie"].split("; ")
        assert sorted(attribute.lower() for attribute in attributes) == ["httponly", "max-age=43200", "samesite=strict"]
        assert (await ask(gate, "GET", "keys", host=HERE, cookie=cookie)).status == 200
        again = await (await ask(gate, "GET", "session", host=HERE, cookie=cookie)).json()
        assert again["csrf"] == told["csrf"]


PROXIED = [
    {"host": "rebound.example"},
    {"host": "127.0.0.1.rebound.example"},
    {"host": HERE, "x_forwarded_for": "203.0.113.9"},
    {"host": HERE, "forwarded": "for=203.0.113.9"},
]


async def test_a_proxy_or_another_name_is_not_this_machine(tmp_path: Path) -> None:
    async with gateway(tmp_path, {}) as gate:
        own = (await ask(gate, "GET", "session", host=HERE)).headers["set-cookie"].partition(";")[0]
        for headers in PROXIED:
            answer = await ask(gate, "GET", "session", **headers)
            told = await answer.json()
            assert (told["authenticated"], told["open"], told["csrf"]) == (False, False, None)
            assert "set-cookie" not in answer.headers
            assert (await ask(gate, "GET", "keys", cookie=own, **headers)).status == 401
            refused = await ask(gate, "POST", "session", {"admin_key": "guess"}, **headers)
            assert (refused.status, (await refused.json())["error"]["code"]) == (403, "permission_denied")


async def test_names_of_this_machine(tmp_path: Path) -> None:
    async with gateway(tmp_path, {}) as gate:
        for host in ("localhost", "LOCALHOST:4000", "[::1]:4000", "127.8.9.1"):
            assert (await (await ask(gate, "GET", "session", host=host)).json())["open"] is True


async def test_the_admin_key_opens_a_session(tmp_path: Path) -> None:
    async with gateway(tmp_path, WITH_KEY) as gate:
        held, told = await log_in(gate)
        assert (told["authenticated"], told["open"], told["admin_key_set"]) == (True, False, True)
        assert (await ask(gate, "POST", "keys", {"name": "a"}, **held)).status == 201
        for lacking in ("cookie", "x_trunkline_csrf"):
            less = {name: value for name, value in held.items() if name != lacking}
            assert (await ask(gate, "POST", "keys", {"name": "a"}, **less)).status == {"cookie": 401}.get(lacking, 403)
        forged = held | {"cookie": held["cookie"][:-2] + "AA"}
        assert (await ask(gate, "GET", "keys", **forged)).status == 401
        crossed = await ask(gate, "POST", "keys", {"name": "a"}, **held, sec_fetch_site="cross-site")
        assert (crossed.status, (await crossed.json())["error"]["code"]) == (403, "permission_denied")
        gone = await ask(gate, "DELETE", "session", **held)
        assert (gone.status, gone.headers["set-cookie"].partition(";")[0]) == (204, 'trunkline_admin=""')


async def test_behind_https_the_cookie_is_secure(tmp_path: Path) -> None:
    async with gateway(tmp_path, WITH_KEY) as gate:
        answer = await ask(gate, "POST", "session", {"admin_key": ADMIN_KEY}, x_forwarded_proto="https")
        assert "; Secure" in answer.headers["set-cookie"]


async def test_a_script_sends_the_key_itself(tmp_path: Path) -> None:
    async with gateway(tmp_path, WITH_KEY) as gate:
        answer = await ask(gate, "POST", "keys", {"name": "a"}, authorization=f"Bearer {ADMIN_KEY}")
        assert answer.status == 201
        for wrong in ("Bearer other", f"Basic {ADMIN_KEY}", "Bearer ", ADMIN_KEY):
            assert (await ask(gate, "GET", "keys", authorization=wrong)).status == 401


async def test_wrong_keys_are_slowed_down(tmp_path: Path) -> None:
    async with gateway(tmp_path, WITH_KEY) as gate:
        for _ in range(10):
            wrong = await ask(gate, "POST", "session", {"admin_key": "guess"})
            assert (wrong.status, (await wrong.json())["error"]["code"]) == (401, "invalid_api_key")
        slowed = await ask(gate, "POST", "session", {"admin_key": ADMIN_KEY})
        assert (slowed.status, (await slowed.json())["error"]["code"]) == (429, "rate_limit_exceeded")
        assert 1 <= int(slowed.headers["retry-after"]) <= 60


async def test_a_session_holds_on_every_replica_and_ends_with_the_key(tmp_path: Path) -> None:
    async with gateway(tmp_path, WITH_KEY) as gate:
        held, _ = await log_in(gate)
    async with gateway(tmp_path, WITH_KEY) as gate:
        assert (await ask(gate, "GET", "keys", **held)).status == 200
    async with gateway(tmp_path, {"server": {"admin_key": "another"}}) as gate:
        assert (await ask(gate, "GET", "keys", **held)).status == 401


async def test_what_is_not_there_says_so(tmp_path: Path) -> None:
    async with gateway(tmp_path, WITH_KEY) as gate:
        for method, path in (("GET", "nothing"), ("PUT", "keys"), ("DELETE", "overview"), ("GET", "")):
            answer = await ask(gate, method, path)
            assert (answer.status, (await answer.json())["error"]["code"]) == (404, "unknown_endpoint")
            assert "access-control-allow-origin" not in answer.headers
