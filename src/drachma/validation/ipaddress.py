"""Rules for addresses that are taken."""

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.validation import fielderror, metadata, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC
from drachma.values import names

_PARENT: Final = SPEC.child("parentRef")


def name_problems(name: str, *, is_prefix: bool) -> Sequence[str]:
    """The name is the address itself, as one writes it."""
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
    return [] if str(address) == name else [f'must be in canonical form ("{address}")']


def check(spec: Mapping[str, Any]) -> Errors:
    """Who has the address."""
    parent = spec.get("parentRef")
    if parent is None:
        yield fielderror.required(_PARENT)
        return
    if parent.get("group"):
        yield from fielderror.problems(
            _PARENT.child("group"), parent["group"], names.dns1123_subdomain(parent["group"])
        )
    for field in ("resource", "name", "namespace"):
        text = parent.get(field, "")
        if text:
            yield from fielderror.problems(_PARENT.child(field), text, names.path_segment_name(text))
        elif field != "namespace":
            yield fielderror.required(_PARENT.child(field))


def check_update(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    """Who has it is decided once."""
    if spec.get("parentRef") != old.get("parentRef"):
        yield fielderror.invalid(_PARENT, rendering.wire(spec.get("parentRef")), metadata.IMMUTABLE)
