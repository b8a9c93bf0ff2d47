"""What a virtual key may be called, hold and limit; which models it may ask for."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from msgspec import UNSET

from trunkline.core.errors import GatewayError
from trunkline.core.keys import GroupChanges, Key, KeyChanges

MOST = 10**15
"""The largest limit: a thousand million dollars, in micro-dollars."""
LEAST_RATE, MOST_RATE = 1, 10**12
"""A key that is to do nothing is blocked, not limited to nothing."""
LONGEST_NAME = 200
LONGEST_TEXT = 512
MOST_MODELS = 200
MOST_METADATA = 32


def check_new(settings: KeyChanges, now_ms: int) -> None:
    """Check what a new key is to be. Raises as `check`."""
    check(settings)
    expires_ms = settings.expires_ms
    if isinstance(expires_ms, int) and expires_ms <= now_ms:
        raise _invalid("expires_at", "the key would have expired already: its end must be in the future")


def check(record: KeyChanges | GroupChanges) -> None:
    """Check what is set. Raises GatewayError `invalid_value` naming the member and what is allowed."""
    if record.name is not UNSET:
        _check_text("name", record.name, LONGEST_NAME)
    if record.metadata is not UNSET:
        if len(record.metadata) > MOST_METADATA:
            number = len(record.metadata)
            raise _invalid("metadata", f"metadata has {number} entries; at most {MOST_METADATA} are allowed")
        for name, value in record.metadata.items():
            _check_text("metadata", name, LONGEST_TEXT)
            _check_text("metadata", value, LONGEST_TEXT, empty=True)
    if record.budget is not UNSET:
        for period in ("total", "day", "month"):
            _check_limit("budget", f"the budget per {period}", getattr(record.budget, period), 0, MOST)
    if isinstance(record, KeyChanges):
        _check_key(record)


def _check_key(record: KeyChanges) -> None:
    if record.rates is not UNSET:
        for name in ("requests", "tokens", "images", "streams"):
            _check_limit("rates", f"the limit of {name}", getattr(record.rates, name), LEAST_RATE, MOST_RATE)
    if record.models is not UNSET:
        if len(record.models) > MOST_MODELS:
            raise _invalid("models", f"models has {len(record.models)} patterns; at most {MOST_MODELS} are allowed")
        for pattern in record.models:
            _check_text("models", pattern, LONGEST_NAME)
    if record.expires_ms is not UNSET and record.expires_ms is not None and not 0 <= record.expires_ms <= MOST:
        raise _invalid("expires_at", "expires_at is not an instant in Unix seconds")


def _check_text(param: str, text: str, longest: int, *, empty: bool = False) -> None:
    if not text.strip() and not empty:
        raise _invalid(param, f"{param} must not be blank")
    if len(text) > longest:
        raise _invalid(param, f"{param} has {len(text)} characters; at most {longest} are allowed")
    if not text.isprintable():
        raise _invalid(param, f"{param} must not hold control characters")


def _check_limit(param: str, what: str, limit: int | None, least: int, most: int) -> None:
    if limit is not None and not least <= limit <= most:
        raise _invalid(param, f"{what} is {limit}; allowed is {least} to {most}, or none")


def _invalid(param: str, message: str) -> GatewayError:
    return GatewayError("invalid_value", message, param=param)


def may_use(key: Key, model: str) -> bool:
    """Tell whether the key may ask for a model by this name; its patterns are globs over whole names."""
    return not key.models or any(fnmatchcase(model, pattern) for pattern in key.models)


def unmatched_words(pattern: str, near: Sequence[str]) -> str:
    """Say that a key's pattern matches no model yet; `near`: what may be meant."""
    meant = f"; did you mean {' or '.join(f'`{name}`' for name in near)}?" if near else ""
    return f"the pattern `{pattern}` matches no model that is known here: it counts once there is one{meant}"


def check_model(key: Key, model: str) -> None:
    """Raise GatewayError `model_not_allowed` when the key may not ask for this model."""
    if not may_use(key, model):
        allowed = ", ".join(key.models[:10]) + (", …" if len(key.models) > 10 else "")
        raise GatewayError("model_not_allowed", f"this key may not use {model!r}; it may use: {allowed}", param="model")
