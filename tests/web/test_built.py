from trunkline.web import built, why_not


def test_the_pages_are_there_or_it_is_known_why_not() -> None:
    files = built()
    if files:
        assert {"index.html", "admin/index.html"} <= files.keys()
        assert not [name for name in files if not name.endswith((".html", ".js", ".css", ".svg", ".br", ".gz"))]
    else:
        assert why_not().endswith(".")
