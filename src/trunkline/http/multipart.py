"""Forms with files (`multipart/form-data`, RFC 7578), read from a body that is whole."""

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from trunkline.core.errors import GatewayError

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

MOST_PARTS = 100
FORM = "multipart/form-data"


class Part(Struct, frozen=True):
    """One field of a form; `filename` is None for text."""

    name: str
    filename: str | None
    mime_type: str
    data: bytes


def is_form(content_type: str) -> bool:
    """Tell whether a body of this type is a form."""
    return content_type.partition(";")[0].strip().lower() == FORM


def read_form(content_type: str, body: bytes) -> list[Part]:
    """Cut a body into its parts, in order. Raises GatewayError `invalid_value`."""
    from python_multipart.exceptions import FormParserError  # noqa: PLC0415 - only who sends forms needs it
    from python_multipart.multipart import MultipartParser, parse_options_header  # noqa: PLC0415 - the same

    boundary = parse_options_header(content_type)[1].get(b"boundary")
    if not boundary:
        raise GatewayError("invalid_value", "The form has no boundary in its content-type.", param="content-type")
    form = _Form(parse_options_header)
    try:
        parser = MultipartParser(boundary, form.callbacks(), max_header_count=16)
        parser.write(body)
        parser.finalize()
    except FormParserError as error:
        raise GatewayError("invalid_value", f"The form cannot be read: {error}.") from None
    if not form.ended:
        raise GatewayError("invalid_value", "The form is cut: its closing boundary is missing.")
    return form.parts


def hash_of(parts: list[Part]) -> str:
    """Give a hash that is the same for the same form sent again, whatever its boundary."""
    digest = hashlib.sha256()
    for part in parts:
        for piece in (part.name.encode(), (part.filename or "").encode(), part.data):
            digest.update(len(piece).to_bytes(8, "big"))
            digest.update(piece)
    return digest.hexdigest()


class _Form:
    """Gathers what the parser finds."""

    def __init__(self, options: Callable[[bytes], tuple[bytes, dict[bytes, bytes]]]) -> None:
        self._options = options
        self.parts: list[Part] = []
        self.ended = False
        self._header = bytearray()
        self._value = bytearray()
        self._headers: dict[str, bytes] = {}
        self._data: list[bytes] = []

    def callbacks(self) -> "MultipartCallbacks":
        return {
            "on_part_begin": self._begin,
            "on_header_field": lambda data, start, end: self._header.extend(data[start:end]),
            "on_header_value": lambda data, start, end: self._value.extend(data[start:end]),
            "on_header_end": self._header_end,
            "on_part_data": lambda data, start, end: self._data.append(memoryview(data)[start:end]),  # type: ignore[arg-type]
            "on_part_end": self._end,
            "on_end": self._over,
        }

    def _begin(self) -> None:
        if len(self.parts) == MOST_PARTS:
            raise GatewayError("invalid_value", f"The form has more than {MOST_PARTS} parts.")
        self._headers, self._data = {}, []

    def _header_end(self) -> None:
        self._headers[self._header.decode("latin-1").lower()] = bytes(self._value)
        self._header.clear()
        self._value.clear()

    def _end(self) -> None:
        options: dict[bytes, Any] = self._options(self._headers.get("content-disposition", b""))[1]
        filename = options.get(b"filename")
        self.parts.append(
            Part(
                name=options.get(b"name", b"").decode("utf-8", "replace"),
                filename=None if filename is None else filename.decode("utf-8", "replace"),
                mime_type=self._headers.get("content-type", b"").decode("latin-1").partition(";")[0].strip().lower(),
                data=b"".join(self._data),
            )
        )

    def _over(self) -> None:
        self.ended = True
