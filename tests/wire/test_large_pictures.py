"""Large pictures are told apart by a part of them: others stay others, the same is given once."""

import base64
import random

from trunkline.core.events import MediaReady
from trunkline.core.notes import Notes
from trunkline.dialects.openai_chat import DIALECT
from trunkline.pipeline import ChatLine

BYTES = 2_000_000


def _chunk(picture: bytes) -> bytes:
    url = f"data:image/png;base64,{base64.b64encode(picture).decode()}"
    delta = f'{{"images":[{{"type":"image_url","image_url":{{"url":"{url}"}}}}]}}'
    return f'data: {{"id":"c1","choices":[{{"index":0,"delta":{delta}}}]}}\n\n'.encode()


def test_pictures_of_one_size_and_end_are_several() -> None:
    chance = random.Random(5)
    first = chance.randbytes(BYTES)
    second = chance.randbytes(BYTES // 2) + first[BYTES // 2 :]
    line = ChatLine(DIALECT, Notes(), salt="s")
    events = [event for picture in (first, first, second, first) for event in line.feed(_chunk(picture))]
    given = [event.media.url for event in events if isinstance(event, MediaReady)]
    assert [base64.b64decode(url.partition(",")[2]) for url in given] == [first, second]
