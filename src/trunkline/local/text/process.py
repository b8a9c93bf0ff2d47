"""`local/text` as the gateway sees it: a supervised child process."""

import msgspec

from trunkline.local.supervisor import SupervisedChild
from trunkline.local.text.weights import Weights


def local_text(weights: Weights) -> SupervisedChild:
    """Make the process that answers with these weights; it starts when the gateway first wants it."""
    return SupervisedChild("local/text", "trunkline.local.text.engine", {"weights": msgspec.to_builtins(weights)})
