"""One page of metrics from those of several workers.

Each worker's series keep a label of their own: a worker that starts anew sets back its own counters only, which
Prometheus understands; in a sum it would look as if everything had been counted again.
"""

from collections.abc import Mapping


def of_all(pages: Mapping[int, str]) -> str:
    """Join pages in Prometheus' text format, by worker: the samples of a family together, each with its `worker`."""
    families: dict[str, list[str]] = {}
    for worker, page in pages.items():
        samples: list[str] = []
        for line in page.splitlines():
            if line.startswith("# HELP "):
                samples = families.setdefault(line, [])
            elif line.startswith("#"):
                if line not in samples:
                    samples.append(line)
            else:
                samples.append(_labelled(line, worker))
    return "".join(f"{line}\n" for head, samples in families.items() for line in (head, *samples))


def _labelled(sample: str, worker: int) -> str:
    name, brace, rest = sample.partition("{")
    if brace:
        return f'{name}{{worker="{worker}",{rest}'
    name, _, value = sample.partition(" ")
    return f'{name}{{worker="{worker}"}} {value}'
