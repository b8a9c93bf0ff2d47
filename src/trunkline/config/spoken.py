"""What this build speaks: a provider's dialects and quirks against those that are there."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from trunkline.config.read import join, not_one_of
from trunkline.core.provider import Provider
from trunkline.dialects import CHAT_DIALECTS, MEDIA_DIALECTS
from trunkline.quirks import QUIRKS

KINDS = {"chat": "text", "image": "image", "video": "video"}
"""What each side makes."""


class Known(Struct, frozen=True):
    """Names of the dialects and quirks that a build knows."""

    chat: frozenset[str] = frozenset()
    media: frozenset[str] = frozenset()
    quirks: frozenset[str] = frozenset()


def this_build() -> Known:
    """Name what is in this build."""
    return Known(frozenset(CHAT_DIALECTS), frozenset(MEDIA_DIALECTS), frozenset(QUIRKS))


class Spoken(Struct):
    """A provider without what is not in this build: a fault where the user asked for it, else left out."""

    provider: Provider
    gone: str = ""
    """A dialect that was left out."""
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def speak(provider: Provider, mine: Mapping[str, Any], path: str, known: Known) -> Spoken:
    """Hold a provider against this build. `mine` is the user's own table, `path` where it stands."""
    spoken = Spoken(provider)
    for side in KINDS:
        names = known.chat if side == "chat" else known.media
        asked = mine.get(side, {})
        _side(spoken, side, names, join(path, side), asked="dialect" in asked)
        _models(spoken, side, names, join(path, "models"), mine.get("models", {}))
        _quirks(spoken, side, known.quirks, join(path, side), asked="quirks" in asked)
    return spoken


def _side(spoken: Spoken, side: str, names: frozenset[str], path: str, *, asked: bool) -> None:
    part = getattr(spoken.provider, side)
    if not part or part.dialect in names:
        return
    spoken.gone = part.dialect
    if asked:
        spoken.problems.append(not_one_of(f"{path}.dialect", part.dialect, sorted(names)))
    left = {name: facts for name, facts in spoken.provider.models.items() if facts.kind != KINDS[side]}
    spoken.provider = replace(spoken.provider, **{side: None}, models=left)


def _models(spoken: Spoken, side: str, names: frozenset[str], path: str, mine: Mapping[str, Any]) -> None:
    models = dict(spoken.provider.models)
    for name, facts in spoken.provider.models.items():
        if facts.kind == KINDS[side] and facts.dialect and facts.dialect not in names:
            del models[name]
            if name in mine:
                spoken.problems.append(not_one_of(f"{join(path, name)}.dialect", facts.dialect, sorted(names)))
    spoken.provider = replace(spoken.provider, models=models)


def _quirks(spoken: Spoken, side: str, names: frozenset[str], path: str, *, asked: bool) -> None:
    part = getattr(spoken.provider, side)
    unknown = [quirk for quirk in part.quirks if quirk not in names] if part else []
    if not unknown:
        return
    if asked:
        spoken.problems.append(not_one_of(f"{path}.quirks", unknown[0], sorted(names)))
    else:
        spoken.warnings.append(f"`{path}`: quirks that are not in this build: {', '.join(unknown)}")
    left = tuple(quirk for quirk in part.quirks if quirk in names)
    spoken.provider = replace(spoken.provider, **{side: replace(part, quirks=left)})
