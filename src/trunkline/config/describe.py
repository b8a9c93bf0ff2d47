"""The configuration's fields, as a list and as a JSON schema."""

from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, Meta, Struct

from trunkline.config.read import describe, hints_of, is_table, strip
from trunkline.config.schema import Config
from trunkline.core.provider import ModelFacts
from trunkline.core.secret import Secret


class Field(Struct, frozen=True):
    """One field: where it stands, what it takes, what it is when nothing is said."""

    path: str
    type: str
    default: str
    description: str


def fields(cls: type[Struct] = Config, path: str = "") -> Iterator[Field]:
    """List every field under a table, tables of tables included."""
    hints = hints_of(cls)
    for info in msgspec.structs.fields(cls):
        at = f"{path}.{info.name}" if path else info.name
        hint = hints[info.name]
        inner, name = _table(hint)
        if inner:
            yield from fields(inner, f"{at}.{name}" if name else at)
        else:
            yield Field(at, describe(hint), _default(info), _description(hint))


def json_schema() -> dict[str, Any]:
    """Give the JSON schema of the file, for editors."""
    schema = msgspec.json.schema(Config, schema_hook=_schema_of)
    text = {"type": "string"}
    tables = schema["$defs"]
    key = tables["Provider"]["properties"]["api_key"]
    key.update({"anyOf": [text, {"type": "array", "items": text}]})
    key.pop("type", None)
    key.pop("items", None)
    tables["MediaSide"].pop("required", None)  # a shipped provider has it already
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "trunkline.toml", **schema}


def _table(hint: Any) -> tuple[type[Struct] | None, str]:
    """Give the Struct of a table, and how its name is written where the table is one of many."""
    plain = strip(hint)
    if get_origin(plain) is dict and is_table(get_args(plain)[1]):
        inner = strip(get_args(plain)[1])
        return inner, "MODEL" if inner is ModelFacts else "NAME"
    return (plain, "") if isinstance(plain, type) and issubclass(plain, Struct) else (None, "")


def _default(info: msgspec.structs.FieldInfo) -> str:
    if info.default is NODEFAULT:
        return "required" if info.default_factory is NODEFAULT else ""
    if isinstance(info.default, bool):
        return "true" if info.default else "false"
    if isinstance(info.default, tuple):
        return ", ".join(map(str, info.default))
    return "" if info.default is None else str(info.default)


def _description(hint: Any) -> str:
    if get_origin(hint) is Annotated:
        own = next((meta.description for meta in hint.__metadata__ if isinstance(meta, Meta) and meta.description), "")
        return own or _description(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return next((found for arg in get_args(hint) if arg is not NoneType and (found := _description(arg))), "")
    return ""


def _schema_of(cls: type) -> dict[str, Any]:
    if cls is Secret:
        return {"type": "string"}
    raise TypeError(f"the schema has no word for {cls}")
