"""Loading: precedence, secrets, merging over the shipped files."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from trunkline.config.load import Loaded, build, load
from trunkline.config.read import ConfigError
from trunkline.config.spoken import Known

OWN = """
[providers.home]
base_url = "http://127.0.0.1:11434/v1"
api_key = "secret-word"
chat = { dialect = "openai_chat" }
"""


def read(text: str, environ: Mapping[str, str] | None = None, known: Known | None = None) -> Loaded:
    return build(tomllib.loads(text), environ or {}, {}, known)


def test_without_anything_the_defaults_and_the_embedded_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    loaded = load()
    assert loaded.config.server.listen == "127.0.0.1:4000"
    assert list(loaded.config.providers) == ["local"]
    assert loaded.warnings == []


def test_flag_over_environment_over_file() -> None:
    tables = tomllib.loads('[server]\nlisten = "127.0.0.1:1"\ndata_dir = "/file"\npublic_url = "https://file.example"')
    environ = {"TRUNKLINE_LISTEN": "127.0.0.1:2", "TRUNKLINE_DATA_DIR": "/environ"}
    server = build(tables, environ, {"server.listen": "127.0.0.1:3"}).config.server
    assert (server.listen, server.data_dir, server.public_url) == ("127.0.0.1:3", "/environ", "https://file.example")


def test_the_flag_names_the_file_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("flag", "environ", "trunkline"):
        (tmp_path / f"{name}.toml").write_text(f'[server]\ndata_dir = "/{name}"')
    monkeypatch.chdir(tmp_path)
    environ = {"TRUNKLINE_CONFIG": "environ.toml"}
    assert load("flag.toml", environ).config.server.data_dir == "/flag"
    assert load(None, environ).config.server.data_dir == "/environ"
    assert load().config.server.data_dir == "/trunkline"


def test_a_key_in_the_environment_switches_a_shipped_provider_on() -> None:
    loaded = read("", {"OPENAI_API_KEY": "sk-1"})
    assert [key.reveal() for key in loaded.config.providers["openai"].api_key] == ["sk-1"]
    assert loaded.states["openai"].why == "OPENAI_API_KEY is set"
    assert not loaded.states["groq"].on
    assert "GROQ_API_KEY" in loaded.states["groq"].why


def test_an_empty_variable_is_no_key() -> None:
    assert "openai" not in read("", {"OPENAI_API_KEY": ""}).config.providers


def test_enabled_false_keeps_a_provider_off_whatever_is_set() -> None:
    loaded = read('[providers.openai]\nenabled = false\napi_key = "env:GONE"', {"OPENAI_API_KEY": "sk-1"})
    assert "openai" not in loaded.config.providers
    assert loaded.warnings == []


def test_a_table_differs_from_the_shipped_file_field_by_field() -> None:
    text = '[providers.openai]\napi_key = "x"\n[providers.openai.models."gpt-own"]\nkind = "text"'
    provider = read(text).config.providers["openai"]
    assert provider.base_url == "https://api.openai.com/v1"
    assert {"gpt-own", "gpt-4o-mini"} <= set(provider.models)


def test_another_dialect_takes_the_shipped_quirks_away() -> None:
    text = '[providers.deepseek]\napi_key = "x"\nchat = { dialect = "anthropic_messages" }'
    chat = read(text).config.providers["deepseek"].chat
    assert chat is not None
    assert (chat.dialect, chat.quirks, chat.rename) == ("anthropic_messages", (), {})


def test_several_keys_in_turn_and_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("from-file\n")
    text = f'[providers.openai]\napi_key = ["env:A", "file:{tmp_path}/key", "itself"]'
    keys = read(text, {"A": "from-env"}).config.providers["openai"].api_key
    assert [key.reveal() for key in keys] == ["from-env", "from-file", "itself"]
    assert [key.name.partition(":")[0] for key in keys] == ["env", "file", "literal"]


def test_no_secret_is_ever_shown() -> None:
    text = (
        OWN
        + '[server]\nadmin_key = "secret-word"\nsecret = "secret-word"\n[storage]\nshared = "redis://:secret-word@h"'
    )
    text += '\n[providers.home.headers]\nx-token = "secret-word"'
    loaded = read(text, {"TRUNKLINE_DATABASE": "postgresql://u:secret-word@h/d"})
    assert "secret-word" not in repr(loaded)
    assert "secret-word" not in f"{loaded.config.server.admin_key} {loaded.config.storage.database!s}"
    assert loaded.config.providers["home"].headers["x-token"].reveal() == "secret-word"


def test_a_dialect_that_is_not_in_this_build_switches_a_shipped_side_off() -> None:
    environ = {"OPENAI_API_KEY": "x", "ANTHROPIC_API_KEY": "x"}
    loaded = read("", environ, Known(chat=frozenset({"openai_chat"})))
    assert "anthropic" not in loaded.config.providers
    assert "anthropic_messages" in loaded.states["anthropic"].why
    openai = loaded.config.providers["openai"]
    assert openai.image is None
    assert {facts.kind for facts in openai.models.values()} == {"text"}


def test_addresses_take_environment_variables() -> None:
    environ = {"OLLAMA_HOST": "box:11434", "OPENAI_API_KEY": "x", "OPENAI_BASE_URL": "http://relay.example/v1/"}
    providers = read("", environ).config.providers
    assert providers["ollama"].base_url == "http://box:11434/v1"
    assert providers["openai"].base_url == "http://relay.example/v1"


def test_a_provider_without_its_address_stays_off() -> None:
    loaded = read("", {"AZURE_OPENAI_API_KEY": "x"})
    assert "azure" not in loaded.config.providers
    assert loaded.states["azure"].why == "AZURE_OPENAI_ENDPOINT is not set"


def test_a_declared_provider_without_a_key_stays_off_with_a_warning() -> None:
    loaded = read("[providers.groq]")
    assert loaded.warnings == ["`providers.groq` is off: GROQ_API_KEY is not set"]


def test_a_local_server_is_on_when_it_is_named() -> None:
    assert "vllm" in read("[providers.vllm]").config.providers
    assert "vllm" not in read("").config.providers


def test_loading_twice_gives_the_same() -> None:
    text = OWN + '[providers.ollama]\nbase_url = "http://a.example/v1"'
    assert read(text).config == read(text).config
    assert read("[providers.ollama]").config.providers["ollama"].base_url == "http://127.0.0.1:11434/v1"


def test_a_mistyped_variable_is_warned_of() -> None:
    assert read("", {"TRUNKLINE_ADMIN_KEYS": "x"}).warnings == [
        "the environment variable TRUNKLINE_ADMIN_KEYS is not read: did you mean TRUNKLINE_ADMIN_KEY?"
    ]


def test_the_first_problem_is_the_message_and_says_how_many_follow() -> None:
    with pytest.raises(ConfigError) as caught:
        read('[server]\nlisten = "nowhere"\npublic_url = "nothing"')
    assert str(caught.value).startswith("`server.listen` must be HOST:PORT")
    assert str(caught.value).endswith("(1 more: trunkline config check)")


def test_a_file_with_everything_that_the_contract_names(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("home-key")
    text = f"""
[server]
listen   = "127.0.0.1:4000"
data_dir = "./data"
public_url = "https://ai.example.com"
secret = "s"
admin_key = "a"
[storage]
database = "postgresql://db"
shared   = "valkey://cache"
media    = "s3://bucket/prefix"
[providers.openai]
api_key = "env:OPENAI_API_KEY"
[providers.home]
base_url = "http://127.0.0.1:11434/v1"
api_key  = "file:{tmp_path}/home"
chat     = {{ dialect = "openai_chat" }}
image    = {{ dialect = "openai_images" }}
[providers.local]
model = "/models/own.gguf"
[models.fast]
targets  = ["groq:openai/gpt-oss-20b", {{ target = "anthropic:claude-haiku-4-5", weight = 3 }}]
strategy = "in_order"
timeouts = {{ connect_s = 5, first_event_s = 20, idle_s = 60 }}
media_style = "markdown"
kind = "text"
progress = "off"
on_disconnect = "cancel"
hedge_s = 1.5
price = {{ input_per_mtok = 1, output_per_mtok = 2.5 }}
[models."*"]
targets  = ["home:*"]
[keys]
required = true
[media]
retain_s = 0
link_ttl_s = 0
max_bytes = 1000
allow_private = true
proxy = "http://proxy.example:3128"
[resume]
max_bytes = 1000
ttl_s = 60
[cache]
[debug]
record = "captures"
"""
    environ = dict.fromkeys(["OPENAI_API_KEY", "GROQ_API_KEY", "ANTHROPIC_API_KEY"], "x")
    config = read(text, environ).config
    assert list(config.models) == ["fast", "*"]
    assert config.models["fast"].timeouts.first_event_s == 20
    assert config.providers["home"].api_key[0].reveal() == "home-key"
    assert config.providers["local"].model == "/models/own.gguf"
    assert (config.keys.required, config.media.retain_s, config.debug.record) == (True, 0, "captures")
