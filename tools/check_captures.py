"""Are captures read as their canonical streams say, byte for byte? `make captures DIR=…`.

The folder's README has a table: a capture, its canonical stream, the model's name. Of a Markdown page only the answer
object in it is a capture.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

_ROW = re.compile(r"^\| `([^`]+)` .*`([^`]+\.canonical\.sse)` \(`--model ([^`]+)`", re.MULTILINE)


def answer_object(page: str) -> bytes:
    """Give the last JSON object with choices that stands in a page."""
    found = ""
    for place in re.finditer(r"^\{", page, re.MULTILINE):
        try:
            value, end = json.JSONDecoder().raw_decode(page, place.start())
        except ValueError:
            continue
        if "choices" in value:
            found = page[place.start() : end]
    return found.encode()


def main() -> int:
    """Compare all; the exit status says whether all are equal."""
    folder = Path(sys.argv[1])
    rows = _ROW.findall((folder / "README.md").read_text())
    different = 0
    for name, canonical, model in rows:
        data = (folder / name).read_bytes()
        if name.endswith(".md"):
            data = answer_object(data.decode())
        command = [sys.executable, "-m", "trunkline", "normalize", "-", "--model", model, "--include-usage"]
        told = subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True).stdout
        equal = told == (folder / canonical).read_bytes()
        different += not equal
        print(f"{'equal    ' if equal else 'DIFFERENT'} {name} ({len(told)} bytes)")
    if not rows:
        print("no captures found")
    return 1 if different or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
