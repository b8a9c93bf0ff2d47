"""Which route a model name means (contract section 2): exact alias, glob alias, `provider/model`, bare name."""

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase, translate
from functools import lru_cache

from msgspec.structs import replace

from trunkline.core.chat import Target
from trunkline.core.errors import GatewayError
from trunkline.core.near import near
from trunkline.core.provider import ChatSide, MediaSide, ModelFacts, ModelKind, Provider, Side
from trunkline.core.route import Alias, AliasTarget, ListedModel, Route, RouteTarget, split_target
from trunkline.ingress.media_suffix import bases

CACHED_ROUTES = 4096
SUFFIX = "-2K"
"""As names may end whose model is known without it."""


class UnknownModelError(GatewayError):
    """No route; the message lists close names."""

    def __init__(self, message: str) -> None:
        super().__init__("model_not_found", message, param="model")


class RoutingTable:
    """Routes by model name. Built whole from a configuration and never changed: a reload builds another."""

    def __init__(self, providers: Mapping[str, Provider], aliases: Mapping[str, Alias], off: Mapping[str, str]) -> None:
        self._providers = dict(providers)
        self._off = off
        self._exact = {name: alias for name, alias in aliases.items() if not is_pattern(name)}
        self._patterns = sorted((name for name in aliases if is_pattern(name)), key=_precedence)
        self._globs = [(re.compile(translate(name)), aliases[name]) for name in self._patterns]
        self._bare: dict[str, str] = {}
        for provider_name, provider in self._providers.items():
            for model in provider.models:
                self._bare.setdefault(model, provider_name)
        self._cached = lru_cache(CACHED_ROUTES)(self._resolve)

    @classmethod
    def build(
        cls, providers: Mapping[str, Provider], aliases: Mapping[str, Alias], off: Mapping[str, str] | None = None
    ) -> "RoutingTable":
        """Build the table of `Config.providers` (those that are on, in order) and `Config.models`.

        `off` says of the other providers why they are not on: who asks for their models is told.
        """
        return cls(providers, aliases, off or {})

    def route(self, name: str) -> Route:
        """Give the route of a name. Raises UnknownModelError (404, with close names)."""
        return self._cached(name)

    def models(self) -> list[ListedModel]:
        """List what clients can choose: exact aliases, then `provider/model` of every catalogue."""
        names = list(self._exact)
        for provider_name, provider in self._providers.items():
            names += [f"{provider_name}/{model}" for model in provider.models]
        return [_listed(self._resolve(name)) for name in dict.fromkeys(names) if not self._taken(name)]

    def unmatched(self, patterns: Iterable[str]) -> dict[str, list[str]]:
        """Give those of a key's patterns that match no model that is known here, and for each what may be meant.

        Where an alias is a pattern, or a provider has no catalogue, any name may be a model's.
        """
        own = [f"{owner}/{model}" for owner, provider in self._providers.items() for model in provider.models]
        names = [*self._exact, *self._bare, *own]
        known = {*names, *(f"{name}{SUFFIX}" for name in names)}
        anything = tuple(f"{owner}/" for owner, provider in self._providers.items() if not provider.models)
        begins = (*anything, *map(_literal, self._patterns))

        def matches(pattern: str) -> bool:
            if is_pattern(pattern):
                literal = _literal(pattern)
                some = any(literal.startswith(begin) or begin.startswith(literal) for begin in begins)
                return some or any(fnmatchcase(name, pattern) for name in known)
            return self._known(pattern) or pattern.startswith(anything) or not known.isdisjoint(bases(pattern))

        return {pattern: near(pattern[:100], names, 3) for pattern in patterns if not matches(pattern)}

    def _taken(self, name: str) -> bool:
        """Tell whether a catalogue's name is taken by a pattern, so that it means another model."""
        return name not in self._exact and self._glob(name) is not None

    def _glob(self, name: str) -> Alias | None:
        return next((alias for pattern, alias in self._globs if pattern.match(name)), None)

    def _resolve(self, name: str) -> Route:
        if not self._known(name):
            for base in bases(name):
                if self._known(base) and (route := self._resolve(base)).kind != "text":
                    suffixed = (replace(item, suffix=name.removeprefix(base)) for item in route.targets)
                    return replace(route, name=name, targets=tuple(suffixed))
        alias = self._exact.get(name) or self._glob(name)
        if alias and alias.targets:
            targets = tuple(self._target(item, name, alias) for item in alias.targets)
        else:
            targets = (self._plain(name, alias or Alias()),)
        kind = (alias and alias.kind) or targets[0].facts.kind
        return Route(name, kind, targets, alias or Alias())

    def _known(self, name: str) -> bool:
        """Tell whether a name is one of its own: what is at its end then says nothing."""
        provider, _, model = name.partition("/")
        listed = provider in self._providers and model in self._providers[provider].models
        return name in self._exact or listed or name in self._bare or self._glob(name) is not None

    def _target(self, item: str | AliasTarget, name: str, alias: Alias) -> RouteTarget:
        text, weight = (item.target, item.weight) if isinstance(item, AliasTarget) else (item, 1.0)
        parts = split_target(text)
        if not parts or parts[0] not in self._providers:
            raise UnknownModelError(f"the target `{text}` of the model `{name}` is not served here")
        provider, model = parts
        found = self._reach(provider, name if model == "*" else model, alias)
        if not found:
            why = f"`{provider}` has no such model, or makes nothing of this kind"
            raise UnknownModelError(f"the target `{text}` of the model `{name}` is not served here: {why}")
        return replace(found, weight=weight)

    def _plain(self, name: str, alias: Alias) -> RouteTarget:
        """Read a name without its alias: `provider/model`, else a bare name of a catalogue."""
        provider, slash, model = name.partition("/")
        if slash and model and provider in self._providers and (found := self._reach(provider, model, alias)):
            return found
        if name in self._bare and (found := self._reach(self._bare[name], name, alias)):
            return found
        raise UnknownModelError(self._not_found(name))

    def _reach(self, provider_name: str, model: str, alias: Alias) -> RouteTarget | None:
        provider = self._providers[provider_name]
        facts = provider.models.get(model) or _unknown_facts(provider)
        part, side = _part(provider, alias.kind or facts.kind)
        if not part or (model not in provider.models and _is_embedded(provider)):
            return None
        target = Target(
            provider=provider_name,
            model=facts.id or model,
            base_url=part.base_url or provider.base_url,
            dialect=(facts.dialect if side == facts.kind else "") or part.dialect,
            side=side,
            path=part.path,
            quirks=part.quirks,
            rename=part.rename,
            drop=part.drop,
            options=provider.options,
        )
        return RouteTarget(
            target, provider, part.auth or provider.auth, facts, alias.price or facts.price or provider.price
        )

    def _not_found(self, name: str) -> str:
        shown = name if len(name) <= 100 else name[:100] + "…"
        provider = name.partition("/")[0]
        if provider != name and provider in self._off:
            return f"The model `{shown}` does not exist here: the provider `{provider}` is off ({self._off[provider]})."
        listed = [*self._exact, *self._bare, *(f"{owner}/{model}" for model, owner in self._bare.items())]
        close = near(name[:100], listed, 3)
        meant = f" Did you mean {' or '.join(f'`{item}`' for item in close)}?" if close else ""
        return f"The model `{shown}` does not exist here.{meant} GET /v1/models lists all."


def is_pattern(name: str) -> bool:
    """Tell whether an alias is a pattern."""
    return any(mark in name for mark in "*?[")


def _precedence(pattern: str) -> tuple[int, int]:
    """Sort key: longest literal prefix first, then the longer pattern; a lone `*` is last."""
    return -len(_literal(pattern)), -len(pattern)


def _literal(pattern: str) -> str:
    """Give what a pattern begins with."""
    return re.split(r"[*?\[]", pattern, maxsplit=1)[0]


def _part(provider: Provider, kind: ModelKind) -> tuple[ChatSide | MediaSide | None, Side]:
    """Choose how to reach a model of a kind: its own side, else in a chat."""
    if kind == "image" and provider.image:
        return provider.image, "image"
    if kind == "video" and provider.video:
        return provider.video, "video"
    return provider.chat, "chat"


def _is_embedded(provider: Provider) -> bool:
    """Tell whether a provider is this gateway's own: without an address, all that it has is in its catalogue."""
    return bool(provider.models) and not provider.base_url


def _unknown_facts(provider: Provider) -> ModelFacts:
    """Assume of a model that no catalogue knows: it makes the first thing its provider does."""
    if provider.chat:
        return ModelFacts()
    return ModelFacts(kind="image" if provider.image else "video")


def _listed(route: Route) -> ListedModel:
    first = route.targets[0]
    return ListedModel(route.name, route.kind, first.target.provider, first.facts)
