"""Texts in ten languages, cut into the tokens that OpenAI's o200k_base makes of them.

`counted_texts.json` was written with js-tiktoken 1.0.21. A character of several tokens stands in the first of them, and
the others are empty.
"""

import json
from pathlib import Path

TEXTS: dict[str, list[str]] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
"""By language, their tokens."""
