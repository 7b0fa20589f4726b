"""Rules for what policies and bindings match, and which parameters they are given."""

from collections.abc import Mapping
from typing import Any, Final

from drachma.validation import fielderror, rendering
from drachma.validation.admissionregistration import resourcerules
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.validation.podspec import selectors
from drachma.values import names

POLICIES: Final = ("Equivalent", "Exact")
_NOT_FOUND_ACTIONS: Final = ("Deny", "Allow")


def check_resources(resources: Mapping[str, Any], at: Path) -> Errors:
    """Match constraints of a policy, or match resources of a binding."""
    yield from enumerated(resources.get("matchPolicy"), at.child("matchPolicy"), POLICIES)
    for field in ("namespaceSelector", "objectSelector"):
        selector = resources.get(field)
        if selector is None:
            yield fielderror.required(at.child(field))
        else:
            yield from selectors.check(selector, at.child(field))
    for field in ("resourceRules", "excludeResourceRules"):
        for position, rule in enumerate(resources.get(field) or ()):
            yield from resourcerules.check_named(rule, at.child(field).item(position))


def enumerated(value: str | None, at: Path, allowed: tuple[str, ...]) -> Errors:
    """A value that must be there and be one of these."""
    if not value:
        yield fielderror.required(at)
    elif value not in allowed:
        yield fielderror.not_supported(at, rendering.named(value), allowed)


def check_param_kind(kind: Mapping[str, Any], at: Path) -> Errors:
    """The kind of the parameters of a policy."""
    api_version, name = kind.get("apiVersion", ""), kind.get("kind", "")
    if not api_version:
        yield fielderror.required(at.child("apiVersion"))
    else:
        yield from _api_version(api_version, at.child("apiVersion"))
    if not name:
        yield fielderror.required(at.child("kind"))
    elif problems := names.dns1035_label(name.lower()):
        detail = f"may have mixed case, but should otherwise match: {','.join(problems)}"
        yield fielderror.invalid(at.child("kind"), name, detail)


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


def check_param_ref(ref: Mapping[str, Any], at: Path) -> Errors:
    """Which parameters a binding gives to its policy."""
    name, selector = ref.get("name", ""), ref.get("selector")
    exclusive = "name and selector are mutually exclusive"
    if name:
        yield from fielderror.problems(at.child("name"), name, names.path_segment_name(name))
        if selector is not None:
            yield fielderror.forbidden(at.child("name"), exclusive)
    if selector is not None:
        yield from selectors.check(selector, at.child("selector"))
        if name:
            yield fielderror.forbidden(at.child("selector"), exclusive)
    if not name and selector is None:
        yield fielderror.required(at, "one of name or selector must be specified")
    yield from enumerated(ref.get("parameterNotFoundAction"), at.child("parameterNotFoundAction"), _NOT_FOUND_ACTIONS)
