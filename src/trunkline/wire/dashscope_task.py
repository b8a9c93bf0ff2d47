"""DashScope's asynchronous tasks, the same for pictures and films (wire.md section 8)."""

from typing import Any

from trunkline.core.chat import Target, UpstreamRequest
from trunkline.core.dialect import Refused, Submitted, Working
from trunkline.core.errors import UpstreamError
from trunkline.wire.media_answer import Answer, failed, malformed, opened
from trunkline.wire.read import as_dict, as_name, as_text

ASYNC = (("x-dashscope-async", "enable"),)


class TaskAnswer(Answer):
    """`{output: {task_id, task_status, …}, usage, request_id}`, or a flat error with `code` and `message`."""

    output: Any = None
    usage: Any = None

    @property
    def fields(self) -> dict[str, Any]:
        """Give what the task has come to."""
        return as_dict(self.output)


def begun(status: int, body: bytes) -> Submitted | Refused:
    """Read the task's id."""
    answer = opened(status, body, TaskAnswer)
    if isinstance(answer, Refused):
        return answer
    name = as_name(answer.fields.get("task_id"))
    if name:
        return Submitted(name)
    return failed(answer, "") if answer.message else malformed(status, body)


def asked(task: str, status: int, body: bytes) -> TaskAnswer | Working | Refused:
    """Read how far the task is: a TaskAnswer is one that succeeded."""
    answer = opened(status, body, TaskAnswer)
    if isinstance(answer, Refused):
        return answer
    fields = answer.fields
    state = as_text(fields.get("task_status")).upper()
    if state == "SUCCEEDED":
        return answer
    if state in ("FAILED", "CANCELED"):
        told = TaskAnswer(code=fields.get("code"), message=fields.get("message"))
        return failed(told, f"the task {task} ended as {state.lower()}")
    if state == "UNKNOWN":  # the provider's word for a task that is expired, or not its own
        return Refused(UpstreamError("upstream_error", f"the provider does not know the task {task}", 502))
    return Working(text="queued" if state == "PENDING" else "") if state else malformed(status, body)


def cancel(task: str, _target: Target) -> UpstreamRequest:
    """Ask for an end; only tasks that still wait are stopped."""
    return UpstreamRequest(f"/tasks/{task}/cancel")
