"""Resource quotas: how much a namespace may use, and how much it does."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.api import resourcequota
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject
from drachma.validation import quota as rules
from drachma.validation.fielderror import Errors
from drachma.values import quantity

_TYPES: Final = """\
ResourceQuota: apiVersion=str kind=str metadata=ObjectMeta! spec=ResourceQuotaSpec! status=ResourceQuotaStatus!
ResourceQuotaSpec: hard=<Quantity> scopeSelector=ScopeSelector scopes=[str]
ResourceQuotaStatus: hard=<Quantity> used=<Quantity>
ScopeSelector!: matchExpressions=[ScopedResourceSelectorRequirement]
ScopedResourceSelectorRequirement: operator=str* scopeName=str* values=[str]
"""
_NUMBERS: Final = """\
ResourceQuota: metadata spec status
ResourceQuotaSpec: hard scopes scopeSelector
ResourceQuotaStatus: hard used
ScopeSelector: matchExpressions
ScopedResourceSelectorRequirement: scopeName operator values
"""
_TEXTS: Final = """\
ResourceQuota: How much a namespace may use, and how much it does.
ResourceQuotaSpec.hard: The most that the namespace may use of each resource.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.core.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, docs=(resourcequota,), uses=(metatypes.META,)
)


class ResourceQuotaStrategy(DocumentStrategy):
    def check(self, content: Document, subject: Subject) -> Errors:
        yield from rules.check(content.get("spec") or {})

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from rules.check_update(content.get("spec") or {}, old.get("spec") or {})

    def check_status(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from rules.check_status(content.get("status") or {})


def _cells(quota: Document, now: datetime) -> layout.Cells:
    status = cells.part(quota, "status")
    requests: list[str] = []
    limits: list[str] = []
    for name, hard in sorted((status.get("hard") or {}).items()):
        used = (status.get("used") or {}).get(name, "0")
        column = limits if name.startswith("limits.") else requests
        column.append(f"{name}: {_canonical(used)}/{_canonical(hard)}")
    return [cells.name(quota), ", ".join(requests), ", ".join(limits), cells.since_creation(quota, now)]


def _canonical(amount: Any) -> str:
    return str(quantity.Quantity.parse(str(amount)))


KIND: Final = Kind(
    group="",
    versions=("v1",),
    plural="resourcequotas",
    kind="ResourceQuota",
    namespaced=True,
    short_names=("quota",),
    subresources=(resources.status(),),
    schemas={"v1": _PACKAGE.object("ResourceQuota")},
    traits=resources.Traits(returns_deleted=True),
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Request", "Used and allowed requests."),
            layout.text("Limit", "Used and allowed limits."),
            layout.AGE,
        ),
        _cells,
    ),
    strategy=ResourceQuotaStrategy,
)
