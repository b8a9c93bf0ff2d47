"""Providers: the shipped files, the user's tables over them, and which of them are on."""

import tomllib
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from trunkline import providers as shipped
from trunkline.config.read import Reading, join
from trunkline.config.secrets import SecretError, expand, resolve
from trunkline.config.spoken import Known, speak
from trunkline.core.provider import Provider
from trunkline.core.secret import Secret

SIDES = ("chat", "image", "video")


class State(Struct, frozen=True):
    """Whether a provider is on, and why (not)."""

    name: str
    on: bool
    why: str
    shipped: bool


class Chosen(Struct):
    """Every provider: those that are on, in order; the state of all; warnings and faults."""

    providers: dict[str, Provider] = field(default_factory=dict)
    states: dict[str, State] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def shipped_tables() -> dict[str, dict[str, Any]]:
    """Read the shipped files, in their order."""
    folder = resources.files(shipped)
    return {name: tomllib.loads((folder / f"{name}.toml").read_text("utf-8")) for name in shipped.ORDER}


def choose(own: Mapping[str, Any], environ: Mapping[str, str], known: Known | None) -> Chosen:
    """Lay the user's `[providers.X]` over the shipped files and decide which are on."""
    chosen = Chosen()
    base = shipped_tables()
    for name in [*base, *(name for name in own if name not in base)]:
        _Choice(name, base.get(name), own.get(name), environ, chosen).decide(known)
    return chosen


class _Choice:
    """The decision on one provider: read what is said of it, see whether it is on, resolve its secrets."""

    def __init__(
        self, name: str, base: dict[str, Any] | None, mine: Any, environ: Mapping[str, str], chosen: Chosen
    ) -> None:
        self.name = name
        self.path = join("providers", name)
        self.base = base
        self.declared = mine is not None
        self.mine = mine if isinstance(mine, Mapping) else {}
        self.table = merge(base or {}, self.mine) if isinstance(mine, Mapping | None) else mine
        self.environ = environ
        self.chosen = chosen

    def decide(self, known: Known | None) -> None:
        reading = Reading(lambda text: Secret(text, text))
        provider = reading.struct(self.table, Provider, self.path)
        if provider is None or reading.problems:
            self.chosen.problems += reading.problems
            return
        provider, unset = self._expand(provider)
        on, why = self._on(provider, unset)
        if on and self.base is None:
            self.chosen.problems += own_problems(provider, self.path)
        if known:
            spoken = speak(provider, self.mine, self.path, known)
            provider = spoken.provider
            self.chosen.problems += spoken.problems
            self.chosen.warnings += spoken.warnings if on else []
            if on and not (provider.chat or provider.image or provider.video):
                on, why = False, f"its dialect {spoken.gone} is not in this build"
        if on:
            self.chosen.providers[self.name] = self._resolve(provider)
        elif self.declared and provider.enabled is not False:
            self.chosen.warnings.append(f"`{self.path}` is off: {why}")
        self.chosen.states[self.name] = State(self.name, on, why, self.base is not None)

    def _expand(self, provider: Provider) -> tuple[Provider, list[str]]:
        """Put environment variables into addresses and options; also give the names of those not set."""
        unset: list[str] = []

        def put(text: str) -> str:
            value, missing = expand(text, self.environ)
            unset.extend(missing)
            return value

        def address(text: str) -> str:
            value = put(text).rstrip("/")
            return value if "://" in value or not value else f"http://{value}"

        sides = {side: part for side in SIDES if (part := getattr(provider, side))}
        expanded = replace(
            provider,
            base_url=address(provider.base_url),
            options={key: put(value) for key, value in provider.options.items()},
            **{side: replace(part, base_url=address(part.base_url)) for side, part in sides.items()},
        )
        return expanded, unset

    def _on(self, provider: Provider, unset: list[str]) -> tuple[bool, str]:
        if provider.enabled is False:
            return False, "enabled = false"
        if unset:
            if self.base is None or "base_url" in self.mine:
                self.chosen.problems.append(f"`{self.path}`: the environment variable {unset[0]} is not set")
            return False, f"{unset[0]} is not set"
        if provider.enabled:
            return True, "enabled = true"
        if "api_key" in self.mine:
            return True, "api_key is given"
        keys = [key.name.removeprefix("env:") for key in provider.api_key]
        found = next((name for name in (*keys, *provider.enabled_by) if self.environ.get(name)), "")
        if found:
            return True, f"{found} is set"
        lacking = [] if self.declared else provider.enabled_by
        if not provider.enabled_by and provider.auth != "none":
            lacking = keys
        none = f"neither {' nor '.join(lacking)} is set" if len(lacking) > 1 else f"{' '.join(lacking)} is not set"
        return not lacking, none if lacking else "declared"

    def _resolve(self, provider: Provider) -> Provider:
        """Read the secrets; of a shipped file's keys the first that is set."""
        keys, where = list(provider.api_key), join(self.path, "api_key")
        if "api_key" not in self.mine:
            keys = [key for key in keys if self.environ.get(key.name.removeprefix("env:"))][:1]
        many = len(keys) > 1
        return replace(
            provider,
            api_key=tuple(self._secret(key, f"{where}[{at}]" if many else where) for at, key in enumerate(keys)),
            headers={
                name: self._secret(value, join(join(self.path, "headers"), name))
                for name, value in provider.headers.items()
            },
        )

    def _secret(self, reference: Secret, path: str) -> Secret:
        try:
            return resolve(reference.reveal(), self.environ)
        except SecretError as error:
            self.chosen.problems.append(f"`{path}`: {error}")
            return reference


def own_problems(provider: Provider, path: str) -> Iterator[str]:
    """Say what a provider of the user's own lacks."""
    sides = [part for part in (provider.chat, provider.image, provider.video) if part]
    if not sides:
        yield f'`{path}` does not say how it speaks: add chat = {{ dialect = "openai_chat" }}, image or video'
    if not provider.base_url and not all(part.base_url for part in sides):
        yield f"`{join(path, 'base_url')}` is missing"


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
