"""Rules for replication controllers."""

from collections.abc import Mapping
from typing import Any, Final

from drachma.validation import fielderror, metadata, workload
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC

_COUNTS: Final = ("minReadySeconds", "replicas")


def check(spec: Mapping[str, Any]) -> Errors:
    """The spec of a replication controller."""
    selector = spec.get("selector") or {}
    if not selector:
        yield fielderror.required(SPEC.child("selector"))
    template = spec.get("template")
    if template is None:
        yield fielderror.required(workload.TEMPLATE)
    else:
        own = (template.get("metadata") or {}).get("labels")
        if not selector.items() <= (own or {}).items():
            yield workload.unmatched(own)
        yield from workload.check_template(template)
        yield from workload.check_lasting(template.get("spec") or {}, title="ReplicationController")
    for field in _COUNTS:
        count = spec.get(field, 0)
        if count < 0:
            yield fielderror.invalid(SPEC.child(field), count, metadata.MUST_NOT_BE_NEGATIVE)


def check_status(status: Mapping[str, Any]) -> Errors:
    """How far it is."""
    yield from workload.check_replica_set_status(status)
