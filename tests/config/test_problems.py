"""Every fault of a configuration is one sentence that names the place and what is allowed."""

import tomllib
from pathlib import Path

import pytest

from trunkline.config.load import build, load
from trunkline.config.read import ConfigError
from trunkline.config.spoken import Known

KNOWN = Known(
    chat=frozenset({"openai_chat", "gemini_chat"}), media=frozenset({"openai_images"}), quirks=frozenset({"think_tags"})
)
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
    '[providers.home]\nbase_url = "http://x"': "`providers.home` says not how it speaks: add chat = ",
    '[providers.home]\nchat = { dialect = "openai_chat" }': "`providers.home.base_url` is missing",
    '[providers.home]\nbase_url = "ftp://x"\nchat = {}': "`providers.home.base_url` must be an http:// or https:// ",
    '[providers."a:b"]\nbase_url = "http://x"\nchat = {}': '`providers."a:b"`: a provider\'s name holds no colon',
    HOME.replace("openai_chat", "openai_chatt"): "`providers.home.chat.dialect` is `openai_chatt`: did you mean `ope",
    HOME + 'image = { dialect = "openai_image" }': "`providers.home.image.dialect` is `openai_image`: did you mean ",
    HOME + "image = {}": "`providers.home.image.dialect` is missing",
    HOME + 'api_key = "env:HOME_KEY"': "`providers.home.api_key`: the environment variable HOME_KEY is not set",
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
