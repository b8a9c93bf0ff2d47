"""What the provider's models say: markdown, what must not run, and long answers."""

import re

MARKDOWN = """## Lines and trunks

A **trunk line** carries what many branches bring. See [the contract](https://example.com), and *note*:

1. it is shared,
2. it does not `care` who calls.

| kind | colour | arrives as |
|---|---|---:|
| text | blue | chunks |
| image | vermilion | a link |

```python
def trunk(branches):
    for branch in branches:
        yield from branch
```

> One line, many stations.

![elsewhere](https://tracker.example/pixel.png)
"""
EVIL = '<img src=x onerror="window.hacked=1">'
HOSTILE = """<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>
<svg onload="window.hacked=1"></svg> <iframe srcdoc="<script>parent.hacked=1</script>"></iframe>

[click](javascript:window.hacked=1) [data](data:text/html,<script>window.hacked=1</script>)
![x](javascript:window.hacked=1)
<a href="java&#115;cript:window.hacked=1">entity</a> [ref][r] <form action="https://evil.example"><input name=q></form>

```html"><img src=x onerror=window.hacked=1>
<script>window.hacked=1</script>
```

![x" onerror="window.hacked=1](https://evil.example/x.png "t\\" onload=\\"window.hacked=1")

[r]: javascript:window.hacked=1
"""

CODE = (
    "```python\n"
    + "".join(f'def f{n}(a, b):\n    return [a + b * {n}]  # <tag> & "{n}"\n\n' for n in range(900))
    + "```\n"
)
LIST = "".join(f"- item **{n}** with `code {n}` of a list\n  - nested {n} with *words*\n" for n in range(700))
TABLE = "| a | b | c |\n|---|---|---|\n" + "".join(f"| cell {n} | **bold** {n} | `code` {n} |\n" for n in range(700))
PROSE = "".join(f"word{n} **bold{n}** " for n in range(4500))
PART = """## Part {0}

Some *words* about part {0} with `code` and **bold** text.

```ts
export const part{0} = {0};
```

- one
- two

| a | b |
|---|---|
| {0} | 2 |

"""
PARTS = "".join(PART.format(number) for number in range(200))
FLOODS = {"many_parts": PARTS, "one_code": CODE, "one_list": LIST, "one_table": TABLE, "one_paragraph": PROSE}
"""Long answers, by the model that gives them."""


def pieces(text: str) -> list[str]:
    """Cut a text as models do, into some ten thousand chunks."""
    return re.findall(r"\S+\s*|\s+", text)
