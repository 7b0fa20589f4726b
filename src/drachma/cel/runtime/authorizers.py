"""Authorizers in expressions: ``authorizer.group("apps").resource("deployments").check("get").allowed()``.

An :class:`Authorizer` is made for the user of a request by the caller that evaluates expressions with one; the steps of
the chain are values that say more and more about a question, and ``check`` asks it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from drachma.cel.runtime import faults
from drachma.values import names

_PREFIX: Final = "kubernetes.authorization."
AUTHORIZER: Final = f"{_PREFIX}Authorizer"
DECISION: Final = f"{_PREFIX}Decision"
GROUP_CHECK: Final = f"{_PREFIX}GroupCheck"
PATH_CHECK: Final = f"{_PREFIX}PathCheck"
RESOURCE_CHECK: Final = f"{_PREFIX}ResourceCheck"


class ServiceAccount(msgspec.Struct, frozen=True):
    """Another subject that an expression may ask about."""

    namespace: str
    name: str


class Decision(msgspec.Struct, frozen=True):
    """The answer to a check; ``error`` is empty where asking went well."""

    allowed: bool
    reason: str = ""
    error: str = ""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """May the subject do this; ``path`` is set for requests that are about no resource.

    ``subject`` is the user of the request where it is None.
    """

    verb: str
    subject: ServiceAccount | None = None
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""


Ask = Callable[[Question], Decision]


class Authorizer(msgspec.Struct, frozen=True, eq=False):
    """First link of a chain."""

    ask: Ask
    subject: ServiceAccount | None = None


class PathCheck(msgspec.Struct, frozen=True, eq=False):
    """A path to be asked about."""

    authorizer: Authorizer
    path: str


class GroupCheck(msgspec.Struct, frozen=True, eq=False):
    """An API group that a resource is to be named of."""

    authorizer: Authorizer
    group: str


class ResourceCheck(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A resource to be asked about."""

    authorizer: Authorizer
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""


def _path(authorizer: Authorizer, path: str) -> PathCheck:
    if not path.strip():
        raise faults.Fault("path must not be empty")
    return PathCheck(authorizer, path)


def _service_account(authorizer: Authorizer, namespace: str, name: str) -> Authorizer:
    if names.dns1123_subdomain(name):
        raise faults.Fault("Invalid service account name")
    if names.dns1123_label(namespace):
        raise faults.Fault("Invalid service account namespace")
    return Authorizer(authorizer.ask, ServiceAccount(namespace, name))


def _resource(check: GroupCheck, resource: str) -> ResourceCheck:
    if not resource.strip():
        raise faults.Fault("resource must not be empty")
    return ResourceCheck(authorizer=check.authorizer, group=check.group, resource=resource)


def _with(field: str) -> Callable[[ResourceCheck, str], ResourceCheck]:
    return lambda check, value: msgspec.structs.replace(check, **{field: value})


def _check_path(check: PathCheck, verb: str) -> Decision:
    authorizer = check.authorizer
    return authorizer.ask(Question(verb=verb, subject=authorizer.subject, path=check.path))


def _check_resource(check: ResourceCheck, verb: str) -> Decision:
    authorizer = check.authorizer
    return authorizer.ask(
        Question(
            verb=verb,
            subject=authorizer.subject,
            group=check.group,
            resource=check.resource,
            subresource=check.subresource,
            namespace=check.namespace,
            name=check.name,
            field_selector=check.field_selector,
            label_selector=check.label_selector,
        )
    )


IMPLEMENTATIONS: Final[dict[str, Callable[..., Any]]] = {
    "authorizer_fieldselector": _with("field_selector"),
    "authorizer_group": GroupCheck,
    "authorizer_labelselector": _with("label_selector"),
    "authorizer_path": _path,
    "authorizer_serviceaccount": _service_account,
    "decision_allowed": lambda decision: decision.allowed,
    "decision_error": lambda decision: decision.error,
    "decision_errored": lambda decision: bool(decision.error),
    "decision_reason": lambda decision: decision.reason,
    "groupcheck_resource": _resource,
    "pathcheck_check": _check_path,
    "resourcecheck_check": _check_resource,
    "resourcecheck_name": _with("name"),
    "resourcecheck_namespace": _with("namespace"),
    "resourcecheck_subresource": _with("subresource"),
}
