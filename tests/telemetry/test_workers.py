"""One page of the metrics of several workers, read as Prometheus' own client reads it."""

from prometheus_client.parser import text_string_to_metric_families

from trunkline.telemetry.metrics import Metrics
from trunkline.telemetry.workers import of_all

PAGES = {
    0: '# HELP a_total A.\n# TYPE a_total counter\na_total{x="1 {"} 2.0\na_total{x="2"} 3.0\n'
    "# HELP b B.\n# TYPE b gauge\nb 4.0\n",
    1: '# HELP a_total A.\n# TYPE a_total counter\na_total{x="1 {"} 5.0\n# HELP b B.\n# TYPE b gauge\nb 6.0\n'
    "# HELP c C.\n# TYPE c gauge\nc 7.0\n",
}


def test_every_sample_says_whose_it_is() -> None:
    families = list(text_string_to_metric_families(of_all(PAGES)))
    assert [(family.name, family.type) for family in families] == [("a", "counter"), ("b", "gauge"), ("c", "gauge")]
    samples = [(s.name, s.labels.get("x"), s.labels["worker"], s.value) for family in families for s in family.samples]
    assert samples == [
        ("a_total", "1 {", "0", 2),
        ("a_total", "2", "0", 3),
        ("a_total", "1 {", "1", 5),
        ("b", None, "0", 4),
        ("b", None, "1", 6),
        ("c", None, "1", 7),
    ]


def test_our_own_metrics_keep_their_names() -> None:
    page = Metrics().text().decode()
    families = list(text_string_to_metric_families(of_all({0: page, 1: page})))
    assert [family.name for family in families] == [family.name for family in text_string_to_metric_families(page)]
    assert all(sample.labels["worker"] in {"0", "1"} for family in families for sample in family.samples)
