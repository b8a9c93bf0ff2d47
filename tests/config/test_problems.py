"""Every fault of a configuration is one sentence that names the place and what is allowed."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trunkline.config.describe import fields
from trunkline.config.load import build, load
from trunkline.config.read import ConfigError
from trunkline.config.spoken import Known
from trunkline.core.provider import Provider

KNOWN = Known(
    chat=frozenset({"openai_chat", "gemini_chat"}), media=frozenset({"openai_images"}), quirks=frozenset({"think_tags"})
)
NAMES = sorted({name for field in fields() for name in field.path.split(".")} | {"home", "openai", "*"})
HOME = '[providers.home]\nbase_url = "http://home.example/v1"\nchat = { dialect = "openai_chat" }\n'


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        build(tomllib.loads(text), {}, {}, KNOWN)
    return caught.value.problems


CASES = {
    '[server]\nlisen = "x"': "unknown key `server.lisen`: did you mean `listen`? allowed: admin_key, body_max_bytes, ",
    "[servers]": "unknown key `servers`: did you mean `server`? allowed: cache, debug, keys, ",
    "server = 3": "`server` must be a table; it is the number 3",
    "providers = 3": "`providers` must be a table; it is the number 3",
    "[providers]\nhome = 3": "`providers.home` must be a table; it is the number 3",
    '[server]\ngrace_s = "ten"': "`server.grace_s` must be a number above 0; it is text",
    "[server]\ngrace_s = inf": "`server.grace_s` must be a number above 0; it is the number inf",
    "[server]\ngrace_s = 2024-01-01": "`server.grace_s` must be a number above 0; it is a date or time",
    "[server]\nbody_max_bytes = 0": "`server.body_max_bytes` must be a whole number at least 1; it is the number 0",
    "[server]\nbody_max_bytes = 1.5": "`server.body_max_bytes` must be a whole number at least 1; it is the number 1.5",
    '[server]\nlisten = "4000"': "`server.listen` must be HOST:PORT with a port of 0 to 65535; it is `4000`",
    '[server]\nlisten = "a:70000"': "`server.listen` must be HOST:PORT with a port of 0 to 65535; it is `a:70000`",
    '[server]\npublic_url = "ai.example.com"': "`server.public_url` must be an http:// or https:// address",
    '[server]\ncors_origins = "*"': "`server.cors_origins` must be a list; it is text",
    '[server]\ntrusted_proxies = ["10.0.0.0/8", "x"]': "`server.trusted_proxies[1]` must be an address or a network",
    '[server]\nadmin_key = "env:NO_SUCH"': "`server.admin_key`: the environment variable NO_SUCH is not set",
    '[server]\nadmin_key = "file:/no/such"': "`server.admin_key`: the file /no/such cannot be read: No such file",
    "[server]\nadmin_key = 3": "`server.admin_key` must be text (env:NAME, file:PATH or itself); it is the number 3",
    '[server]\nadmin_key = ""': "`server.admin_key`: it is empty; write env:NAME, file:PATH or the secret itself",
    '[storage]\ndatabase = "mysql://x"': "`storage.database` must begin with postgresql:// or ",
    '[storage]\ndatabase = "postgresql://x"': "`server.secret` is required with PostgreSQL",
    '[storage]\nshared = "redis://h:port"': "`storage.shared` must be valkey://HOST:PORT/NUMBER",
    '[storage]\nmedia = "gs://x"': "`storage.media` must begin with s3://",
    "[keys]\nrequired = 1": "`keys.required` must be true or false; it is the number 1",
    '[models.a]\ntargets = ["home"]': "`models.a.targets[0]` must be provider:model or provider:*; it is `home`",
    HOME + '[models.a]\ntargets = ["home:b*"]': "`models.a.targets[0]` must be provider:model or provider:*; it is",
    HOME
    + '[models.a]\ntargets = ["hme:b"]': "unknown provider in `models.a.targets[0]` is `hme`: did you mean `home`?",
    '[models.a]\ntargets = ["groq:b"]': "`models.a.targets[0]` names the provider `groq`, which is off: GROQ_API_KEY",
    '[models.a]\ntargets = "home:b"': "`models.a.targets` must be a list; it is text",
    "[models.a]\ntargets = [{ target = 'a:b', wait = 1 }]": "unknown key `models.a.targets[0].wait`: did you mean `wei",
    '[models.a]\nstrategy = "wieghted"': "`models.a.strategy` is `wieghted`: did you mean `weighted`? allowed: in_ord",
    '[models.a]\ntimeouts = { idle_s = "5s" }': "`models.a.timeouts.idle_s` must be a number above 0; it is text",
    '[models."a b.c"]\nkind = "imge"': '`models."a b.c".kind` is `imge`: did you mean `image`? allowed: text, image, ',
    "[models.nothing]": "`models.nothing.targets` is missing: no provider that is on has a model of this name",
    HOME + '[models.a]\ntargets = ["home:b"]\ntask_model = "zzzz"': "`models.a.task_model`: The model `zzzz` does not",
    HOME + '[models.a]\ntargets = ["home:b"]\nkind = "image"\ntask_model = "a"': "`models.a.task_model` is `a`, which ",
    '[providers.home]\nbase_url = "http://x"': "`providers.home` does not say how it speaks: add chat = ",
    '[providers.home]\nchat = { dialect = "openai_chat" }': "`providers.home.base_url` is missing",
    '[providers.home]\nbase_url = "ftp://x"\nchat = {}': "`providers.home.base_url` must be an http:// or https:// ",
    '[providers."a:b"]\nbase_url = "http://x"\nchat = {}': '`providers."a:b"`: a provider\'s name holds no colon',
    HOME.replace("openai_chat", "openai_chatt"): "`providers.home.chat.dialect` is `openai_chatt`: did you mean `ope",
    HOME + 'image = { dialect = "openai_image" }': "`providers.home.image.dialect` is `openai_image`: did you mean ",
    HOME + "image = {}": "`providers.home.image.dialect` is missing",
    HOME + 'api_key = "env:HOME_KEY"': "`providers.home.api_key`: the environment variable HOME_KEY is not set",
    HOME.replace("//home", "//user:word@home"): "`providers.home.base_url` must not hold a name or password",
    HOME.replace("/v1", "/v1?api-version=1"): "`providers.home.base_url` must end with its path",
    HOME.replace("home.example", "[::"): "`providers.home.base_url` must be an http:// or https:// address",
    HOME.replace("home.example", "home.example:0"): "`providers.home.base_url` must be an http:// or https:// ",
    HOME + 'api_key = "two\\nlines"': "`providers.home.api_key`: it holds a line break or another control character",
    HOME
    + 'api_key = "file:a\\u0000b"': "`providers.home.api_key`: the file a\\x00b cannot be read: embedded null byte",
    '[models."a\\nb"]\nkind = "x\\u001b[1m"': '`models."a\\nb".kind` is `x\\x1b[1m`; allowed: text, image, video',
    HOME + 'auth = "bear"': "`providers.home.auth` is `bear`: did you mean `bearer`? allowed: bearer, api-key,",
    HOME.replace("home.example", "${HOME_HOST}"): "`providers.home`: the environment variable HOME_HOST is not set",
    HOME.replace('" }', '", quirks = ["think_tag"] }'): "`providers.home.chat.quirks` is `think_tag`: did you mean ",
    HOME + 'models.x.kind = "image"\nmodels.x.dialect = "xx"': "`providers.home.models.x.dialect` is `xx`; allowed: ",
    HOME + "models.x.price.per_image = -1": "`providers.home.models.x.price.per_image` must be a number at least 0",
    HOME + 'models.x.price.per_image.2K = "x"': "`providers.home.models.x.price.per_image.2K` must be a number at",
}


@pytest.mark.parametrize("text", CASES)
def test_one_clear_sentence(text: str) -> None:
    assert [problem for problem in problems(text) if not problem.startswith(CASES[text])] == []


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["home:*", "env:NO", "openai_chat", "text", "${X}", "http://x", "http://[", "file:\0"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=3), inner),
    max_leaves=20,
)


def said(tables: dict[str, Any]) -> list[str]:
    try:
        build(tables, {"X": "y"}, {}, KNOWN)
    except ConfigError as error:
        return error.problems
    return []


SETTINGS = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SETTINGS
@given(st.dictionaries(st.sampled_from(["server", "storage", "providers", "models", "keys", "media", "x"]), VALUES))
def test_whatever_it_holds_it_is_read_or_refused_in_words(tables: dict[str, Any]) -> None:
    assert all(problem.isprintable() for problem in said(tables))


@SETTINGS
@given(
    st.sampled_from(["openai", "azure", "vllm", "home"]),
    st.dictionaries(st.sampled_from(Provider.__struct_fields__), VALUES, min_size=1, max_size=3),
)
def test_whatever_a_provider_holds_it_is_read_or_refused_in_words(name: str, table: dict[str, Any]) -> None:
    assert all(problem.isprintable() for problem in said({"providers": {name: table}}))


def test_all_faults_are_found_at_once() -> None:
    assert len(problems('[server]\nlisen = "x"\ngrace_s = "x"\n[keys]\nneeded = 1')) == 3


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"[server\n", "is not valid TOML: Expected ']' at the end of a table declaration (at line 1, column 8)"),
        (
            b"[server]\nlisten = 'a'\nlisten = 'b'\n",
            "is not valid TOML: Cannot overwrite a value (at line 3, column 13)",
        ),
        (b"\xff", "is not UTF-8 text (byte 0)"),
        (b"x = " + b"1" * 10_000, "is not valid TOML: a number in it has thousands of digits"),
        (b"x = " + b"[" * 100_000, "is nested too deeply"),
    ],
)
def test_a_file_that_is_no_toml(tmp_path: Path, data: bytes, sentence: str) -> None:
    path = tmp_path / "trunkline.toml"
    path.write_bytes(data)
    with pytest.raises(ConfigError) as caught:
        load(str(path))
    assert str(caught.value) == f"{path}: {sentence}"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml: cannot be read: No such file or directory"):
        load(str(tmp_path / "none.toml"))
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load(None, {"TRUNKLINE_CONFIG": str(tmp_path)})


def test_a_byte_order_mark_is_read_over(tmp_path: Path) -> None:
    path = tmp_path / "trunkline.toml"
    path.write_bytes(b'\xef\xbb\xbf[server]\ndata_dir = "/d"')
    assert load(str(path)).config.server.data_dir == "/d"
