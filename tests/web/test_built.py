from trunkline.web import DIST, why_not


def test_the_pages_are_there_or_it_is_known_why_not() -> None:
    files = {path.relative_to(DIST).as_posix() for path in DIST.rglob("*") if path.is_file()} - {"STAMP", "NOT_BUILT"}
    if files:
        assert {"index.html", "admin/index.html"} <= files
        assert not [name for name in files if not name.endswith((".html", ".js", ".css", ".svg", ".br", ".gz"))]
    else:
        assert why_not().endswith(".")
