"""Chromium, the gateway, and a page that may do nothing behind our back."""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from browsing import DESKTOP, SLOW_S, OpenPage
from openai import APIError, OpenAI
from provider import Provider
from real import ADMIN_KEY, Cable, nginx_before, running_gateway

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CALLED = ("priced", "priced", "up/capture_relay_zero_usage", "up/breaks", "up/wrong", "up/still", "up/film")
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--autoplay-policy=no-user-gesture-required",
]


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only in the group `browser`

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def provider() -> Iterator[Provider]:
    """What stands behind the gateway, beside its embedded models."""
    provider = Provider()
    yield provider
    provider.stop()


@pytest.fixture(scope="session")
def real(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the gateway is. It asks for no key."""
    with running_gateway(tmp_path_factory.mktemp("gateway"), provider.url) as url:
        yield url


@pytest.fixture(scope="session")
def locked(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a gateway is that asks for a key."""
    with running_gateway(tmp_path_factory.mktemp("locked"), provider.url, required=True) as url:
        yield url


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[str]:
    """Where a gateway is that has nothing but its embedded models."""
    with running_gateway(tmp_path, "") as url:
        yield url


@pytest.fixture(scope="session")
def fronted(real: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the gateway is behind nginx, under a prefix; so its admin pages want the admin key."""
    with nginx_before(real, tmp_path_factory.mktemp("nginx")) as url:
        yield url


@pytest.fixture
def cable(real: str) -> Iterator[Cable]:
    cable = Cable(real)
    yield cable
    cable.close()


@pytest.fixture(scope="session")
def busy(real: str, browser: "Browser") -> str:
    """Where the gateway is, once some calls were made."""
    operator = browser.new_context(extra_http_headers={"authorization": f"Bearer {ADMIN_KEY}"})
    operator.set_default_timeout(SLOW_S * 1000)

    def calls() -> int:
        return sum(operator.request.get(f"{real}admin/api/overview").json()["last_24h"]["calls"])

    before = calls()
    client = OpenAI(base_url=f"{real}v1", api_key="none", max_retries=0)
    for model in CALLED:
        with suppress(APIError):  # of the models that fail
            list(
                client.chat.completions.create(
                    model=model, stream=True, messages=[{"role": "user", "content": "hello"}]
                )
            )
    while calls() < before + len(CALLED):
        time.sleep(0.1)  # what has ended is booked a little later
    operator.close()
    return real


@pytest.fixture
def open_page(browser: "Browser", real: str) -> Iterator[OpenPage]:
    """Open a page of the gateway; at the end nothing went wrong in it and nothing was asked of another host."""
    pages: list[Page] = []
    faults: list[str] = []

    def open_it(path: str = "", base: str = "", **context: Any) -> "Page":
        base = base or real
        origin = "/".join(base.split("/")[:3]) + "/"
        opened = browser.new_context(**{"viewport": DESKTOP, "locale": "en-GB"} | context)
        opened.set_default_timeout(SLOW_S * 1000)
        page = opened.new_page()
        page.on("pageerror", lambda error: faults.append(f"error: {error}"))
        page.on("console", lambda said: faults.append(said.text) if is_fault(said) else None)
        page.on("request", lambda asked: faults.append(f"asked {asked.url}") if is_foreign(asked.url, origin) else None)
        page.goto(base + path)
        pages.append(page)
        return page

    yield open_it
    hacked = [page.evaluate("window.hacked ?? null") for page in pages]
    for page in pages:
        page.context.close()
    assert faults == []
    assert hacked == [None] * len(hacked)


def is_fault(said: Any) -> bool:
    """Errors of the console, but not the browser's own note of a status or lost connection that the page handles."""
    return said.type in {"error", "warning"} and not said.text.startswith("Failed to load resource")


def is_foreign(url: str, origin: str) -> bool:
    return not url.startswith((origin, "data:", "blob:"))
