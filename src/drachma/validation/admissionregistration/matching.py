"""Rules for match resources, resource rules and parameters of policies, bindings and webhooks."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.validation import constraints, fielderror, rendering, rulenotation, selectors
from drachma.validation.fielderror import Errors, FieldError
from drachma.validation.path import Path
from drachma.values import names

Document = Mapping[str, Any]

ANY: Final = "*"
_is_operation: Final = constraints.one_of(ANY, "CONNECT", "CREATE", "DELETE", "UPDATE")


# Resource rules


def _resource_names(resource_names: Sequence[str], at: Path) -> Errors:
    for position, name in enumerate(resource_names):
        yield from constraints.path_segment(name, at.item(position))
        if name in resource_names[:position]:
            yield fielderror.duplicate(at.item(position), name)


def _check_rule(rule: Document, at: Path) -> list[FieldError]:
    return TYPES["RuleWithOperations"](rule, at)


def _operations(operations: Sequence[str], at: Path) -> Errors:
    yield from _check_alone(operations, at, "operations")
    for position, operation in enumerate(operations):
        yield from _is_operation(operation, at.item(position))


def _api_groups(groups: Sequence[str], at: Path) -> Errors:
    yield from _check_alone(groups, at, "API groups")


def _api_versions(versions: Sequence[str], at: Path) -> Errors:
    yield from _check_alone(versions, at, "API versions")
    for position, version in enumerate(versions):
        if not version:
            yield fielderror.required(at.item(position))


def _check_alone(items: Sequence[str], at: Path, title: str) -> Errors:
    if len(items) > 1 and ANY in items:
        yield fielderror.invalid(at, rendering.wire(list(items)), f"if '*' is present, must not specify other {title}")


def _resources(resources: Sequence[str], at: Path) -> Errors:
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
    display = rendering.wire(list(resources))
    if len(resources) > 1 and "*/*" in resources:
        yield fielderror.invalid(at, display, "if '*/*' is present, must not specify other resources")
    if ANY in resources and names_one:
        detail = "if '*' is present, must not specify other resources without subresources"
        yield fielderror.invalid(at, display, detail)


# Parameters


def _api_version(text: str, at: Path) -> Errors:
    if text.count("/") > 1:
        yield fielderror.invalid(at, text, f"unexpected GroupVersion string: {text}")
        return
    group, _, version = ("", "", "") if text == "/" else text.rpartition("/")
    if group and (problems := names.dns1123_subdomain(group)):
        yield fielderror.invalid(at, group, ",".join(problems))
    if not version:
        yield fielderror.invalid(at, text, "version must be specified")
    elif problems := names.dns1035_label(version):
        yield fielderror.invalid(at, version, ",".join(problems))


def _kind_name(name: str, at: Path) -> Errors:
    if problems := names.dns1035_label(name.lower()):
        detail = f"may have mixed case, but should otherwise match: {','.join(problems)}"
        yield fielderror.invalid(at, name, detail)


def _check_parameters(ref: Document, at: Path) -> Errors:
    name, selector = ref.get("name", ""), ref.get("selector")
    exclusive = "name and selector are mutually exclusive"
    if name:
        yield from constraints.path_segment(name, at.child("name"))
        if selector is not None:
            yield fielderror.forbidden(at.child("name"), exclusive)
    if selector is not None:
        yield from selectors.check(selector, at.child("selector"))
        if name:
            yield fielderror.forbidden(at.child("selector"), exclusive)
    if not name and selector is None:
        yield fielderror.required(at, "one of name or selector must be specified")


TYPES: Final = rulenotation.load("admissionregistration/matching", globals())
