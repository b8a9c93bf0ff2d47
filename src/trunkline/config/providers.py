"""Providers: the shipped files, the user's tables over them, and which of them are on."""

import tomllib
from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from importlib import resources
from typing import Any

from msgspec import Struct, field

from trunkline import providers as shipped
from trunkline.config.read import Reading, join
from trunkline.config.secrets import expand, is_set
from trunkline.config.spoken import Known, speak
from trunkline.core.provider import Provider

SIDES = ("chat", "image", "video")


class State(Struct, frozen=True):
    """Whether a provider is on, and why (not)."""

    name: str
    on: bool
    why: str
    shipped: bool


class Chosen(Struct):
    """Every provider: those that are on, in order; the state of all; what is worth a warning."""

    providers: dict[str, Provider] = field(default_factory=dict)
    states: dict[str, State] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


@cache
def shipped_tables() -> dict[str, dict[str, Any]]:
    """Read the shipped files, in their order."""
    folder = resources.files(shipped)
    return {name: tomllib.loads((folder / f"{name}.toml").read_text("utf-8")) for name in shipped.ORDER}


def choose(own: Mapping[str, Any], environ: Mapping[str, str], known: Known | None, reading: Reading) -> Chosen:
    """Merge the user's `[providers.X]` over the shipped files and decide which are on; faults go to `reading`."""
    chosen = Chosen()
    base = shipped_tables()
    for name in [*base, *(name for name in own if name not in base)]:
        mine = own.get(name)
        if mine is not None and not isinstance(mine, Mapping):
            reading.struct(mine, Provider, join("providers", name))
            continue
        _Choice(name, base.get(name), mine, environ, reading).decide(chosen, known)
    return chosen


class _Choice:
    """One provider's merging."""

    def __init__(
        self,
        name: str,
        base: Mapping[str, Any] | None,
        mine: Mapping[str, Any] | None,
        environ: Mapping[str, str],
        reading: Reading,
    ) -> None:
        self.name = name
        self.path = join("providers", name)
        self.base = base
        self.mine = mine or {}
        self.declared = mine is not None
        self.environ = environ
        self.reading = reading
        self.table = deepcopy(merge(base or {}, self.mine))
        if self.table.get("enabled") is False:
            self.table = {key: value for key, value in self.table.items() if key not in {"api_key", "headers"}}

    def decide(self, chosen: Chosen, known: Known | None) -> None:
        key = self._pick_key()
        unset = self._expand()
        on, why = self._on(key, unset)
        before = len(self.reading.problems)
        provider = self.reading.struct(self.table, Provider, self.path)
        if provider is None or len(self.reading.problems) > before:
            return
        if on and self.base is None:
            self._check_own(provider)
        if known:
            spoken = speak(provider, self.mine, self.path, known)
            provider = spoken.provider
            self.reading.problems += spoken.problems
            chosen.warnings += spoken.warnings if on else []
            if on and not (provider.chat or provider.image or provider.video):
                on, why = False, f"its dialect {spoken.gone} is not in this build"
        if on:
            chosen.providers[self.name] = provider
        elif self.declared and provider.enabled is not False:
            chosen.warnings.append(f"`{self.path}` is off: {why}")
        chosen.states[self.name] = State(self.name, on, why, self.base is not None)

    def _pick_key(self) -> str:
        """Keep of a shipped file's references the first that is set; give its name."""
        if "api_key" in self.mine:
            return "api_key"
        refs = self.table.pop("api_key", [])
        found = next((ref for ref in _as_list(refs) if is_set(ref, self.environ)), "")
        if found:
            self.table["api_key"] = found
        return found.removeprefix("env:")

    def _expand(self) -> list[str]:
        """Put environment variables into addresses and options; give the names of those not set."""
        unset: list[str] = []

        def put(text: Any, *, address: bool) -> Any:
            if not isinstance(text, str):
                return text
            value, missing = expand(text, self.environ)
            unset.extend(missing)
            if not address:
                return value
            return (value if "://" in value or not value else f"http://{value}").rstrip("/")

        for table in [self.table, *(self.table.get(side) for side in SIDES)]:
            if isinstance(table, dict) and "base_url" in table:
                table["base_url"] = put(table["base_url"], address=True)
        options = self.table.get("options")
        if isinstance(options, dict):
            self.table["options"] = {key: put(value, address=False) for key, value in options.items()}
        return unset

    def _on(self, key: str, unset: list[str]) -> tuple[bool, str]:
        if self.table.get("enabled") is False:
            return False, "enabled = false"
        if unset:
            if self.base is None or "base_url" in self.mine:
                self.reading.problems.append(f"`{self.path}`: the environment variable {unset[0]} is not set")
            return False, f"{unset[0]} is not set"
        if self.table.get("enabled") is True:
            return True, "enabled = true"
        switches = self.table.get("enabled_by", [])
        found = key or next((name for name in switches if self.environ.get(name)), "")
        if found:
            return True, f"{found} is set"
        lacking = [] if self.declared else switches
        if not switches and self.table.get("auth") != "none":
            lacking = [ref.removeprefix("env:") for ref in _as_list((self.base or {}).get("api_key", []))]
        none = f"neither {' nor '.join(lacking)} is set" if len(lacking) > 1 else f"{' '.join(lacking)} is not set"
        return not lacking, none if lacking else "declared"

    def _check_own(self, provider: Provider) -> None:
        sides = [part for part in (provider.chat, provider.image, provider.video) if part]
        if not sides:
            self.reading.problems.append(
                f'`{self.path}` says not how it speaks: add chat = {{ dialect = "openai_chat" }}, image or video'
            )
        if not provider.base_url and not all(part.base_url for part in sides):
            self.reading.problems.append(f"`{join(self.path, 'base_url')}` is missing")


def merge(base: Mapping[str, Any], mine: Mapping[str, Any]) -> dict[str, Any]:
    """Lay one table over another, field by field; a part with another `dialect` is taken whole."""
    merged = dict(base)
    for key, value in mine.items():
        below = merged.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping) and _same_dialect(below, value):
            merged[key] = merge(below, value)
        else:
            merged[key] = value
    return merged


def _same_dialect(below: Mapping[str, Any], above: Mapping[str, Any]) -> bool:
    return bool(above.get("dialect", below.get("dialect")) == below.get("dialect"))


def _as_list(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)
