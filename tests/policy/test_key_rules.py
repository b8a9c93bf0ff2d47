"""What keys may be set to and which models they may use."""

import pytest

from trunkline.core.errors import GatewayError
from trunkline.core.keys import Key, KeyChanges
from trunkline.policy.key_rules import check, check_model, may_use


@pytest.mark.parametrize(
    ("patterns", "model", "allowed"),
    [
        ((), "anything/at:all", True),
        (("gpt-4o",), "gpt-4o", True),
        (("gpt-4o",), "gpt-4o-mini", False),
        (("local/*",), "local/text", True),
        (("local/*",), "other/local/text", False),
        (("*",), "a/b/c", True),
        (("a", "b*"), "bcd", True),
        (("GPT-*",), "gpt-4o", False),
    ],
)
def test_models_are_globs_over_whole_names(patterns: tuple[str, ...], model: str, allowed: bool) -> None:  # noqa: FBT001
    key = Key(id="key_1", name="a", models=patterns)
    assert may_use(key, model) is allowed


def test_a_model_that_is_not_allowed_is_told_with_what_is() -> None:
    with pytest.raises(GatewayError, match=r"may not use 'gpt-5'; it may use: local/\*") as error:
        check_model(Key(id="key_1", name="a", models=("local/*",)), "gpt-5")
    assert (error.value.status, error.value.code, error.value.param) == (403, "model_not_allowed", "model")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (KeyChanges(name="x" * 201), "201 characters; at most 200"),
        (KeyChanges(metadata={"a": "x" * 600}), "600 characters; at most 512"),
        (KeyChanges(metadata={str(n): "" for n in range(33)}), "33 entries; at most 32"),
        (KeyChanges(models=("",)), "must not be blank"),
        (KeyChanges(models=("a",) * 201), "201 patterns; at most 200"),
        (KeyChanges(expires_ms=-1), "not an instant"),
    ],
)
def test_bounds_are_told(changes: KeyChanges, words: str) -> None:
    with pytest.raises(GatewayError, match=words):
        check(changes)
