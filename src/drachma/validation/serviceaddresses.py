"""Rules for the addresses of services and their families."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.validation import constraints, fielderror, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC

HEADLESS: Final = "None"
"""Address of a headless service."""

_ADDRESSES: Final = SPEC.child("clusterIPs")
_FAMILIES: Final = SPEC.child("ipFamilies")
_POLICY: Final = SPEC.child("ipFamilyPolicy")
_FAMILY_NAMES: Final = ("IPv4", "IPv6")
_POLICY_NAMES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")


def is_headless(spec: Mapping[str, Any]) -> bool:
    addresses: Sequence[str] = spec.get("clusterIPs") or ()
    return len(addresses) == 1 and addresses[0] == HEADLESS


def family(address: str) -> str:
    """Return the family of a valid address."""
    return "IPv6" if ":" in address else "IPv4"


def check(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    """Yield the errors of the addresses of a service; those of the ``old`` one may stay."""
    if spec.get("type") == "ExternalName":
        return
    first: str = spec.get("clusterIP", "")
    every: Sequence[str] = spec.get("clusterIPs") or ()
    if first and not every:
        yield fielderror.required(_ADDRESSES)
    elif first and every[0] != first:
        yield fielderror.invalid(_ADDRESSES, _shown(every), "first value must match `clusterIP`")
    elif not first and every:
        yield fielderror.invalid(_ADDRESSES, _shown(every), "must be empty when `clusterIP` is not specified")
    families: Sequence[str] = spec.get("ipFamilies") or ()
    for position, each in enumerate(families):
        if each not in _FAMILY_NAMES:
            yield fielderror.not_supported(_FAMILIES.item(position), rendering.named(each), _FAMILY_NAMES)
        if each in families[:position]:
            yield fielderror.duplicate(_FAMILIES.item(position), rendering.named(each))
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _POLICY_NAMES:
        yield fielderror.not_supported(_POLICY, rendering.named(policy), _POLICY_NAMES)
    problems = list(_wrong(every, old.get("clusterIPs") or ()))
    yield from problems
    if len(every) > 2:
        yield fielderror.invalid(_ADDRESSES, _shown(every), "may only hold up to 2 values")
    if not problems:
        yield from _check_families(spec, every, families)


def unallocatable(spec: Mapping[str, Any], configured: Sequence[str]) -> Errors:
    """Yield the errors that prevent the allocation of a new service's addresses, which comes before all rules.

    ``configured`` are the IP families of the cluster.
    """
    if spec.get("type") == "ExternalName":
        return
    problems = list(_wrong(spec.get("clusterIPs") or (), ())) if spec.get("clusterIP") else []
    yield from problems
    if not problems:
        yield from unallocatable_families(spec, configured)


def unallocatable_families(spec: Mapping[str, Any], configured: Sequence[str]) -> Errors:
    """Yield the errors of families and their policy that a cluster with these families cannot provide."""
    if spec.get("type") == "ExternalName" or (is_headless(spec) and not spec.get("selector")):
        return
    policy: Any = spec.get("ipFamilyPolicy")
    for field, title in (("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")):
        if policy == "SingleStack" and len(spec.get(field) or ()) == 2:
            detail = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {title} are specified"
            yield fielderror.invalid(_POLICY, policy, detail)
    if policy == "RequireDualStack" and len(configured) < 2:
        yield fielderror.invalid(_POLICY, policy, "this cluster is not configured for dual-stack services")
    for position, each in enumerate(spec.get("ipFamilies") or ()):
        if each in _FAMILY_NAMES and each not in configured:
            yield fielderror.invalid(_FAMILIES.item(position), rendering.named(each), "not configured on this cluster")


def check_update(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    """Yield errors if an update changes the first address or family, unless the type is or was ExternalName."""
    if "ExternalName" in (spec.get("type"), old.get("type")):
        return
    if not (is_headless(spec) and is_headless(old)):
        yield from _kept("clusterIPs", spec, old, title="clusterIP")
    if not is_headless(spec) and not is_headless(old):
        yield from _kept("ipFamilies", spec, old, title="ipFamily")


def _wrong(addresses: Sequence[str], before: Sequence[str]) -> Errors:
    for position, address in enumerate(addresses):
        if position == 0 and address == HEADLESS:
            if len(addresses) > 1:
                yield fielderror.invalid(_ADDRESSES, _shown(addresses), "'None' must be the first and only value")
        elif address not in before:
            yield from constraints.address(address, _ADDRESSES.item(position))


def _check_families(spec: Mapping[str, Any], addresses: Sequence[str], families: Sequence[str]) -> Errors:
    if len(addresses) > 1 and len({family(each) for each in addresses}) < 2:
        detail = "may specify no more than one IP for each IP family"
        yield fielderror.invalid(_ADDRESSES, _shown(addresses), detail)
    if is_headless(spec):
        return
    for position, (address, each) in enumerate(zip(addresses, families, strict=False)):
        if each in _FAMILY_NAMES and family(address) != each:
            detail = f"expected an {each} value as indicated by `ipFamilies[{position}]`"
            yield fielderror.invalid(_ADDRESSES.item(position), address, detail)


def _kept(field: str, spec: Mapping[str, Any], old: Mapping[str, Any], *, title: str) -> Errors:
    now, before = spec.get(field) or (), old.get(field) or ()
    at = SPEC.child(field)
    if len(now) == len(before):
        for position, (each, stored_address) in enumerate(zip(now, before, strict=True)):
            if each != stored_address:
                place = at.item(position if field == "clusterIPs" else 0)
                yield fielderror.invalid(place, _shown(now), "may not change once set")
        return
    if len(now) < len(before) and not now:
        yield fielderror.invalid(at.item(0), _shown(now), f"primary {title} can not be unset")
    if now and before and now[0] != before[0]:
        yield fielderror.invalid(at.item(0), _shown(now), "may not change once set")
    if len(before) > len(now) == 1 and spec.get("ipFamilyPolicy") != "SingleStack":
        detail = f"must be set to 'SingleStack' when releasing the secondary {title}"
        yield fielderror.invalid(_POLICY, rendering.wire(spec.get("ipFamilyPolicy")), detail)


def _shown(addresses: Sequence[str]) -> rendering.Rendered:
    return rendering.wire(tuple(addresses)) if addresses else rendering.NULL
