"""Rules for match resources, resource rules and parameters of policies, bindings and webhooks."""

from collections.abc import Sequence
from typing import Final

from drachma.validation import constraints, fielderror, rendering, rulenotation
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.values import names

ANY: Final = "*"
_lone_operation: Final = constraints.lone_star("operations")
_lone_group: Final = constraints.lone_star("API groups")
_lone_version: Final = constraints.lone_star("API versions")


# Resource rules


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


TYPES: Final = rulenotation.load("admissionregistration/matching", globals())
