"""Refusals of writes: the Status documents, with upstream's messages, that the server sends and the CLI prints."""

from collections.abc import Sequence
from typing import Any, Final

from drachma.validation.fielderror import FieldError
from drachma.values import quotation

MAX_CAUSES: Final = 1000
"""How many errors a Status tells of; upstream has no limit, and an answer thirty times as long as the request."""


def invalid(errors: Sequence[FieldError], *, group: str, kind: str, name: str) -> dict[str, Any]:
    """The Status of a 422: every error is a cause, and the message has each once; both up to :data:`MAX_CAUSES`."""
    errors = errors[:MAX_CAUSES]
    details: dict[str, Any] = {"name": name, "group": group, "kind": kind}
    details["causes"] = [{"reason": error.type, "message": error.body, "field": str(error.field)} for error in errors]
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message(errors, group=group, kind=kind, name=name),
        "reason": "Invalid",
        "details": {key: value for key, value in details.items() if value},
        "code": 422,
    }


def forbidden(detail: str, *, group: str, plural: str, name: str) -> dict[str, Any]:
    """The Status of a 403, which speaks of the resource and not of its kind; without one, it is about a path."""
    details = {"name": name, "group": group, "kind": plural}
    subject = f"{qualified(plural, group)} {quotation.quote(name)}" if name else qualified(plural, group)
    prefix = f"{subject} is forbidden" if plural else "forbidden"
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"{prefix}: {detail}",
        "reason": "Forbidden",
        "details": {key: value for key, value in details.items() if value},
        "code": 403,
    }


def message(errors: Sequence[FieldError], *, group: str, kind: str, name: str) -> str:
    """The message of a 422."""
    return f"{qualified(kind, group)} {quotation.quote(name)} is invalid: {aggregate(errors)}"


def aggregate(errors: Sequence[FieldError]) -> str:
    """All errors in one line, each message once; brackets where there is more than one."""
    messages = list(dict.fromkeys(map(str, errors)))
    return messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"


def qualified(name: str, group: str) -> str:
    """``name.group``, or the name alone in the core group."""
    return f"{name}.{group}" if group else name
