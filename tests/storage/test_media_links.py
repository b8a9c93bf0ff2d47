from urllib.parse import parse_qs, urlsplit

import pytest

from trunkline.core.links import Verdict, link, sign, verify

SECRET = b"s" * 32


def test_a_link_is_good_until_its_end() -> None:
    url = urlsplit(link(SECRET, "https://ai.example.com/base/", "img_1", 2_000))
    query = parse_qs(url.query)
    exp, sig = query["exp"][0], query["sig"][0]
    assert url.path == "/base/v1/media/img_1"
    assert [verify(SECRET, "img_1", exp, sig, now) for now in (0, 1_999, 2_000)] == ["ok", "ok", "expired"]


def test_a_link_without_end_is_good_for_ever() -> None:
    assert verify(SECRET, "img_1", "0", sign(SECRET, "img_1", 0), 1 << 40) == "ok"


@pytest.mark.parametrize(
    ("media_id", "exp", "sig"),
    [
        ("img_2", "2000", sign(SECRET, "img_1", 2000)),
        ("img_1", "2001", sign(SECRET, "img_1", 2000)),
        ("img_1", "0", sign(SECRET, "img_1", 2000)),
        ("img_1", "2000", sign(b"other", "img_1", 2000)),
        ("img_1", "2000", ""),
        ("img_1", "2000", "\udcff€"),
        ("img_1", "", sign(SECRET, "img_1", 0)),
        ("img_1", "-1", sign(SECRET, "img_1", -1)),
        ("img_1", "٣", sign(SECRET, "img_1", 3)),
        ("img_1", "9" * 5000, "0" * 64),
    ],
)
def test_anything_else_is_wrong_whatever_its_date(media_id: str, exp: str, sig: str) -> None:
    verdicts: set[Verdict] = {verify(SECRET, media_id, exp, sig, now) for now in (0, 5_000)}
    assert verdicts == {"wrong"}
