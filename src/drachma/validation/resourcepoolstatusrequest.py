"""Rules for ResourcePoolStatusRequest."""

from collections.abc import Mapping
from typing import Any, Final

from drachma.validation import constraints, fielderror, rendering, rulenotation, typerules
from drachma.validation.fielderror import Errors
from drachma.validation.kindrules import Change, KindRules
from drachma.validation.path import Path
from drachma.values import names

_driver_name: Final = constraints.text(names.dns1123_subdomain_caseless)
_pool_name: Final = constraints.text(names.resource_pool_name)


def _check_status(content: Mapping[str, Any], old: Mapping[str, Any], at: Path) -> Errors:
    """Check a new status; a status is written once."""
    status, place = content.get("status"), at.child("status")
    if old.get("status") is None:
        yield from _TYPES["ResourcePoolStatusRequestStatus"](status or {}, place)
    elif status != old["status"]:
        yield fielderror.invalid(place, rendering.wire(status), typerules.IMMUTABLE)


_TYPES: Final = rulenotation.load("resourcepoolstatusrequest", globals())
RULES: Final = KindRules(
    always=_TYPES["ResourcePoolStatusRequest"],
    update=Change(typerules.immutable("spec")),
    status=Change(_check_status),
)
