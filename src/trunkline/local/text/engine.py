"""The child process of `local/text`: llama.cpp's own server, on a loopback port."""

import signal
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import xllamacpp  # type: ignore[import-untyped]

from trunkline.local.child import Parent
from trunkline.local.text.cpus import usable_cpus
from trunkline.local.text.weights import Weights, damage

SLOTS = 4
"""Answers written at a time, and the most that `n` may ask for; further requests wait in llama.cpp's queue."""
CONTEXT_TOKENS = 4096
"""For each answer, prompt and all, or what the model was trained for when that is less."""
BATCH_TOKENS = 64
"""Read of a prompt at a time. Between batches a client that left is noticed: larger ones are no faster on CPUs."""
ERRORS_ONLY = 1
TEMPLATE = Path(__file__).with_name("chat_template.jinja")
"""Of the shipped weights, whose own knows no tools."""


class Settings(msgspec.Struct):
    """What the parent hands over."""

    key: str
    weights: Weights


def parameters(settings: Settings) -> xllamacpp.CommonParams:
    """Say to llama.cpp what to load and how to serve it."""
    weights = settings.weights
    params = xllamacpp.CommonParams()
    params.model.path = weights.path
    params.model_alias = {weights.name}
    params.model_tags = {
        f"file:{Path(weights.path).name}",
        *([f"sha256:{weights.sha256[:16]}"] if weights.sha256 else []),
    }
    if weights.sha256:
        params.chat_template = TEMPLATE.read_text()
    params.api_keys = [settings.key]
    params.n_parallel = SLOTS
    params.n_ctx = SLOTS * CONTEXT_TOKENS
    params.n_batch = params.n_ubatch = BATCH_TOKENS
    params.cache_ram_mib = 0  # by default 8 GiB of old prompts
    params.ui = False
    params.endpoint_slots = False
    params.verbosity = ERRORS_ONLY
    # with every CPU busy llama.cpp's threads wait for each other, thirty times slower: one is left to the gateway
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = max(1, usable_cpus() - 1)
    return params


def main() -> None:
    """Load the weights, serve, and end with the parent."""
    parent = Parent()
    settings = parent.settings(Settings)
    weights = settings.weights
    if problem := damage(weights):
        parent.refuse(problem)
    try:
        server = xllamacpp.Server(parameters(settings))
    except RuntimeError:
        parent.refuse(
            f"llama.cpp cannot load {weights.path}: it is incomplete, or of a kind that this version does not know."
        )
    parent.ready(urlsplit(server.listening_address).port or 0)
    signal.pause()  # the server has threads of its own; `Parent` ends the process


if __name__ == "__main__":
    main()
