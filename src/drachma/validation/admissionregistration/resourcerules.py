"""Rules for resource rules: which operations on which resources a policy or webhook is about."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.validation import fielderror, metadata, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.values import names

ANY: Final = "*"
_OPERATIONS: Final = (ANY, "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES: Final = (ANY, "Cluster", "Namespaced")


def check(rule: Mapping[str, Any], at: Path) -> Errors:
    """A rule of a webhook."""
    operations: Sequence[str] = rule.get("operations") or ()
    if not operations:
        yield fielderror.required(at.child("operations"))
    yield from _alone(operations, at.child("operations"), "operations")
    for position, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            where = at.child("operations").item(position)
            yield fielderror.not_supported(where, rendering.named(operation), _OPERATIONS)
    yield from _place(rule, at)
    yield from _resources(rule.get("resources") or (), at.child("resources"))
    scope = rule.get("scope")
    if scope is not None and scope not in _SCOPES:
        yield fielderror.not_supported(at.child("scope"), rendering.named(scope), _SCOPES)


def check_named(rule: Mapping[str, Any], at: Path) -> Errors:
    """A rule of a policy, which may be about objects of certain names only."""
    seen: set[str] = set()
    for position, name in enumerate(rule.get("resourceNames") or ()):
        where = at.child("resourceNames").item(position)
        yield from fielderror.problems(where, name, names.path_segment_name(name))
        if name in seen:
            yield fielderror.duplicate(where, name)
        seen.add(name)
    yield from check(rule, at)


def _place(rule: Mapping[str, Any], at: Path) -> Errors:
    """Groups, of which the empty one is Kubernetes' own, and versions."""
    groups, versions = rule.get("apiGroups") or (), rule.get("apiVersions") or ()
    if not groups:
        yield fielderror.required(at.child("apiGroups"))
    yield from _alone(groups, at.child("apiGroups"), "API groups")
    if not versions:
        yield fielderror.required(at.child("apiVersions"))
    yield from _alone(versions, at.child("apiVersions"), "API versions")
    for position, version in enumerate(versions):
        if not version:
            yield fielderror.required(at.child("apiVersions").item(position))


def _alone(items: Sequence[str], at: Path, what: str) -> Errors:
    if len(items) > 1 and ANY in items:
        yield fielderror.invalid(at, rendering.wire(list(items)), f"if '*' is present, must not specify other {what}")


def _resources(resources: Sequence[str], at: Path) -> Errors:
    if not resources:
        yield fielderror.required(at)
    all_below: set[str] = set()
    below_all: set[str] = set()
    names_one = False
    for position, each in enumerate(resources):
        where = at.item(position)
        if not each:
            yield fielderror.required(where)
            continue
        resource, slash, subresource = each.partition("/")
        if not slash:
            # Upstream looks at the last of these only.
            names_one = each != ANY
            continue
        if resource in all_below:
            yield fielderror.invalid(where, each, f"if '{resource}/*' is present, must not specify {each}")
        if subresource in below_all:
            yield fielderror.invalid(where, each, f"if '*/{subresource}' is present, must not specify {each}")
        if subresource == ANY:
            all_below.add(resource)
        if resource == ANY:
            below_all.add(subresource)
    shown = rendering.wire(list(resources))
    if len(resources) > 1 and "*/*" in resources:
        yield fielderror.invalid(at, shown, "if '*/*' is present, must not specify other resources")
    if ANY in resources and names_one:
        detail = "if '*' is present, must not specify other resources without subresources"
        yield fielderror.invalid(at, shown, detail)


def policy_name(name: str, at: Path) -> Errors:
    """The name of the policy that a binding binds."""
    yield from fielderror.problems(at, name, metadata.dns_subdomain(name, is_prefix=False))
