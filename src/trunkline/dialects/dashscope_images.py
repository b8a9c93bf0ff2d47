"""DashScope's pictures: newer models answer at once, in the shape of a chat, older ones by a task (wire.md 8)."""

import re

from trunkline.core.chat import Target, UpstreamRequest
from trunkline.core.dialect import MediaDialect, Ready, Refused, Submitted, Working
from trunkline.core.errors import GatewayError
from trunkline.core.media import MediaRequest
from trunkline.wire.dashscope_task import ASYNC, TaskAnswer, asked, begun, cancel
from trunkline.wire.media_answer import failed, medium, opened, ready, usage_of
from trunkline.wire.media_body import get, json_request, link, pictures
from trunkline.wire.media_size import asked_pixels, size_text
from trunkline.wire.read import as_dict, as_text, dicts

_BY_TASK = re.compile(r"wanx|wan2\.[0-5]|flux|stable-diffusion|qwen-image(-plus)?$")
_OLD_PATH = "/services/aigc/text2image/image-synthesis"
_NEW_PATH = "/services/aigc/multimodal-generation/generation"


def submit(request: MediaRequest, target: Target, key: str) -> UpstreamRequest:
    """Ask for pictures."""
    del key  # none is known
    size = asked_pixels(request.ratio, request.tier, request.width, request.height, "1K")
    parameters = {
        "size": size_text(size, "*"),
        "n": request.n if request.n > 1 else None,
        "seed": request.seed,
        "negative_prompt": request.negative_prompt,
        **{name: value for name, value in request.extra.items() if name in ("prompt_extend", "watermark")},
    }
    said = {name: value for name, value in parameters.items() if value is not None}
    given = [link(one) for one in pictures(request)]
    if target.path == _OLD_PATH or (not target.path and not given and _BY_TASK.match(target.model)):
        if given:
            raise GatewayError("invalid_value", f"{target.model} takes no pictures: only words.", param="image")
        negative = said.pop("negative_prompt", None)
        own = {"prompt": request.prompt, **({"negative_prompt": negative} if negative else {})}
        return json_request(target, _OLD_PATH, {"model": target.model, "input": own, "parameters": said}, ASYNC)
    content = [*({"image": one} for one in given), {"text": request.prompt}]
    messages = {"messages": [{"role": "user", "content": content}]}
    return json_request(target, _NEW_PATH, {"model": target.model, "input": messages, "parameters": said})


def submitted(status: int, body: bytes) -> Submitted | Ready | Refused:
    """Read the pictures, or the task's id."""
    answer = opened(status, body, TaskAnswer)
    if isinstance(answer, Refused) or "choices" not in answer.fields:
        return begun(status, body)
    found, text = [], []
    for choice in dicts(answer.fields.get("choices")):
        for part in dicts(as_dict(choice.get("message")).get("content")):
            found.append(medium(part.get("image"), "image"))
            text.append(as_text(part.get("text")))
    return ready(found, "image", usage=usage_of(answer.usage), text="".join(text))


def progress(task: str, status: int, body: bytes) -> Working | Ready | Refused:
    """Read how far it is: of several pictures some may have failed."""
    answer = asked(task, status, body)
    if not isinstance(answer, TaskAnswer):
        return answer
    results = list(dicts(answer.fields.get("results")))
    found = [one for item in results if (one := medium(item, "image"))]
    if not found and results:
        return failed(
            TaskAnswer(code=results[0].get("code"), message=results[0].get("message")), "no picture came of it"
        )
    return ready(found, "image", usage=usage_of(answer.usage))


DIALECT = MediaDialect(
    "dashscope_images",
    submit,
    submitted,
    poll=lambda task, _target: get(f"/tasks/{task}"),
    progress=progress,
    cancel=cancel,
    takes_links=True,
    lacks=frozenset({"mask", "quality", "background"}),
)
