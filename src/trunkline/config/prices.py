"""The shipped price table."""

from importlib import resources

from trunkline import providers


def read_price_table() -> bytes:
    """Give `providers/prices.jsonl` as it is shipped."""
    return resources.files(providers).joinpath("prices.jsonl").read_bytes()
