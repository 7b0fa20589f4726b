"""What is decided otherwise than Kueue decides it: the document ``config.drachma.dev/v1``, kind QueueingPolicy.

It stands beside Kueue's configuration and not in it, so that Kueue still reads its own. Each field is a choice of its
own; the first of each is what Kueue does, and holds where the document or the field is absent.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from drachma.validation import fielderror
from drachma.validation.path import Path

API_VERSION: Final = "config.drachma.dev/v1"
KIND: Final = "QueueingPolicy"


class AdminAccess(enum.StrEnum):
    """Requests that only watch devices which others use: never charged."""

    CHECKED = "Checked"
    """Where they have selectors, devices that match must exist."""
    FREE = "Free"
    """They are not looked at."""


class Sidecars(enum.StrEnum):
    """Extended resources of init containers that go on running."""

    ORDINARY = "Ordinary"
    """As of any init container: the largest counts."""
    CHARGED = "Charged"
    """As they run: beside each other and beside the containers."""


class QueueingPolicy(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """All choices."""

    admin_access: AdminAccess = AdminAccess.CHECKED
    sidecars: Sidecars = Sidecars.ORDINARY


AS_KUEUE: Final = QueueingPolicy()

_CHOICES: Final[Mapping[str, type[enum.StrEnum]]] = {
    field.encode_name: field.type for field in msgspec.structs.fields(QueueingPolicy)
}


def is_policy(document: Mapping[str, Any]) -> bool:
    """Whether a document is a policy, in a version that may or may not be known here."""
    return document.get("kind") == KIND


def read(document: Mapping[str, Any]) -> QueueingPolicy | tuple[fielderror.FieldError, ...]:
    """The policy of a document, or all that is wrong with it."""
    problems = []
    version = document.get("apiVersion")
    if version != API_VERSION:
        problems.append(fielderror.not_supported(Path("apiVersion"), version, [API_VERSION]))
    choices = {name: value for name, value in document.items() if name not in ("apiVersion", "kind", "metadata")}
    for name, value in choices.items():
        kind = _CHOICES.get(name)
        if kind is None:
            problems.append(
                fielderror.forbidden(Path(name), f"there is no such field, there are {', '.join(_CHOICES)}")
            )
        elif value not in tuple(kind):
            problems.append(fielderror.not_supported(Path(name), value, sorted(kind)))
    return tuple(problems) if problems else msgspec.convert(choices, QueueingPolicy)
