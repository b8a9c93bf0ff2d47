"""The generated pages are current, and the example can be used."""

import re
import tomllib
from pathlib import Path

import pytest

from trunkline.config import pages
from trunkline.config.describe import fields, json_schema
from trunkline.config.load import build

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("page", "text"),
    [("configuration.md", pages.configuration()), ("providers.md", pages.providers()), ("rules.md", pages.rules())],
)
def test_the_generated_part_is_current(page: str, text: str) -> None:
    written = (ROOT / "docs" / page).read_text("utf-8")
    assert pages.GENERATED in written
    assert written.partition(pages.GENERATED)[2] == text.partition(pages.GENERATED)[2], "run `make docs`"


def test_every_field_says_what_it_is() -> None:
    assert [field.path for field in fields() if not field.description.endswith(".")] == []
    assert len({field.path for field in fields()}) == len(list(fields()))


def test_the_fields_of_the_contract_are_there_with_their_defaults() -> None:
    defaults = {field.path: field.default for field in fields()}
    expected = {
        "server.listen": "127.0.0.1:4000",
        "server.data_dir": "./data",
        "server.keepalive_s": "10",
        "server.grace_s": "10",
        "server.body_max_bytes": "67108864",
        "server.reserve_output_tokens": "4096",
        "server.unstreamed_wait_s": "300",
        "server.cors_origins": "*",
        "server.trusted_proxies": "",
        "media.retain_s": str(30 * 86400),
        "media.link_ttl_s": str(30 * 86400),
        "media.allow_private": "false",
        "models.NAME.strategy": "in_order",
        "models.NAME.timeouts.connect_s": "5",
        "models.NAME.timeouts.first_event_s": "120",
        "models.NAME.timeouts.idle_s": "60",
        "models.NAME.timeouts.max_wait_s": "1800",
        "models.NAME.timeouts.client_stall_s": "120",
    }
    assert {path: defaults[path] for path in expected} == expected
    named = """
        server.public_url server.secret server.admin_key storage.database storage.shared storage.media keys.required
        media.max_bytes media.proxy resume.max_bytes resume.ttl_s debug.record models.NAME.targets models.NAME.kind
        models.NAME.media_style models.NAME.progress models.NAME.on_disconnect models.NAME.hedge_s
        models.NAME.task_model
    """
    assert set(named.split()) <= set(defaults)


def test_the_example_can_be_used_as_it_is_and_with_every_line(tmp_path: Path) -> None:
    text = (ROOT / "trunkline.example.toml").read_text("utf-8")
    assert build(tomllib.loads(text), {}, {}).warnings == []
    whole = re.sub(r"^# (?=\[|\w+ = )", "", text, flags=re.MULTILINE).replace("/run/secrets", str(tmp_path))
    (tmp_path / "home").write_text("x")
    (tmp_path / "admin").write_text("x")
    names = ["OPENAI_API_KEY", "OPENAI_API_KEY_2", "GROQ_API_KEY", "ZAI_API_KEY", "TRUNKLINE_SECRET"]
    environ = {**dict.fromkeys(names, "x"), "DATABASE_URL": "postgresql://x"}
    config = build(tomllib.loads(whole), environ, {}).config
    assert list(config.models) == ["fast", "cogvideox-3", "*"]
    assert "xai" not in config.providers


def test_the_json_schema_takes_what_we_take() -> None:
    schema = json_schema()
    provider = schema["$defs"]["Provider"]["properties"]
    assert provider["api_key"]["anyOf"] == [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
    assert provider["headers"]["additionalProperties"] == {"type": "string"}
    assert schema["$defs"]["Server"]["additionalProperties"] is False
