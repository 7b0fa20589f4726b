"""Rules for questions about pools of devices."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from drachma.api import meta
from drachma.validation import conditions, fielderror, metadata, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC, STATUS
from drachma.values import names

_MOST_POOLS: Final = 1000


def check(spec: Mapping[str, Any]) -> Errors:
    """What is asked."""
    driver = spec.get("driver", "")
    if not driver:
        yield fielderror.required(SPEC.child("driver"))
    else:
        yield from fielderror.problems(SPEC.child("driver"), driver, names.dns1123_subdomain_caseless(driver))
    pool, limit = spec.get("poolName"), spec.get("limit")
    if pool is not None:
        yield from fielderror.problems(SPEC.child("poolName"), pool, names.resource_pool_name(pool))
    if limit is not None and limit < 1:
        yield fielderror.invalid(SPEC.child("limit"), limit, "must be greater than or equal to 1")
    if limit is not None and limit > _MOST_POOLS:
        yield fielderror.invalid(SPEC.child("limit"), limit, f"must be less than or equal to {_MOST_POOLS}")


def check_update(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    """A question is asked once."""
    if dict(spec) != dict(old):
        yield fielderror.invalid(SPEC, rendering.wire(dict(spec)), metadata.IMMUTABLE)


def check_status(status: Mapping[str, Any] | None, old: Mapping[str, Any] | None) -> Errors:
    """An answer is given once."""
    if old is not None:
        if status != old:
            yield fielderror.invalid(STATUS, rendering.wire(status), metadata.IMMUTABLE)
        return
    given = msgspec.convert((status or {}).get("conditions") or (), tuple[meta.Condition, ...])
    yield from conditions.check(given, STATUS.child("conditions"))
