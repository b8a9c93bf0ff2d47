"""Rows to structs and back: fields are columns of the same name, some of them JSON text."""

from typing import Any, Generic, TypeVar

import msgspec
from msgspec import UNSET, Struct
from sqlalchemy import Select, Table, and_, or_, select
from sqlalchemy.engine import Row

T = TypeVar("T", bound=Struct)


class Records(Generic[T]):
    """Reads and writes structs of one type as rows of one table."""

    def __init__(self, table: Table, struct: type[T], json: tuple[str, ...] = ()) -> None:
        types = {field.name: field.type for field in msgspec.structs.fields(struct)}
        self.struct = struct
        self.columns = [table.c[name] for name in types]
        self._names = tuple(types)
        self._decoders = tuple(msgspec.json.Decoder(types[name]).decode if name in json else None for name in types)
        self._json = frozenset(json)

    def read(self, row: Row[Any]) -> T:
        """Give the struct of a row that was selected as `columns`."""
        values = (decode(value) if decode else value for decode, value in zip(self._decoders, row, strict=True))
        return self.struct(**dict(zip(self._names, values, strict=True)))

    def values(self, record: Struct) -> dict[str, Any]:
        """Give the columns of a struct, or of its changes: what is unset is left out."""
        return {
            name: msgspec.json.encode(value).decode() if name in self._json else value
            for name, value in ((name, getattr(record, name)) for name in record.__struct_fields__)
            if value is not UNSET
        }


def paged(
    query: Select[Any], table: Table, after: str, *, ascending: bool = False, by: str = "created_ms"
) -> Select[Any]:
    """Order a query by an instant (creation), newest first unless `ascending`, and go on after the row of this id."""
    created, identity = table.c[by], table.c.id
    if after:
        seen = select(created).where(identity == after).scalar_subquery()
        query = query.where(
            or_(created > seen, and_(created == seen, identity > after))
            if ascending
            else or_(created < seen, and_(created == seen, identity < after))
        )
    return query.order_by(*((created, identity) if ascending else (created.desc(), identity.desc())))
