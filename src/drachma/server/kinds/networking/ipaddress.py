"""Addresses that are taken, one object each: services have theirs booked with them, so that no two have the same."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import cells, layout
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject
from drachma.validation import ipaddress as rules
from drachma.validation import metadata
from drachma.validation.fielderror import Errors

_TYPES: Final = """\
IPAddress: apiVersion=str kind=str metadata=ObjectMeta! spec=IPAddressSpec!
IPAddressSpec: parentRef=ParentReference
ParentReference: group=str name=str namespace=str resource=str
"""
_NUMBERS: Final = """\
IPAddress: metadata spec
IPAddressSpec: parentRef
ParentReference: group resource namespace name
"""
_TEXTS: Final = """\
IPAddress: An address that is taken.
IPAddressSpec.parentRef: Who has it.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.networking.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META,)
)


class IPAddressStrategy(DocumentStrategy):
    name_rule: metadata.NameRule = staticmethod(rules.name_problems)

    def check_new(self, content: Document, subject: Subject) -> Errors:
        yield from rules.check(content.get("spec") or {})

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from rules.check_update(content.get("spec") or {}, old.get("spec") or {})


def _cells(address: Document, now: datetime) -> layout.Cells:
    parent = cells.part(cells.part(address, "spec"), "parentRef")
    kind = f"{parent.get('resource', '')}{'.' + parent['group'] if parent.get('group') else ''}"
    parts = [kind, parent.get("namespace", ""), parent.get("name", "")]
    shown = "/".join(part for part in parts if part) or "<none>"
    return [cells.name(address), shown, cells.since_creation(address, now)]


KIND: Final = Kind(
    group="networking.k8s.io",
    versions=("v1",),
    plural="ipaddresses",
    kind="IPAddress",
    namespaced=False,
    short_names=("ip",),
    schemas={"v1": _PACKAGE.object("IPAddress")},
    layout=layout.Layout((layout.NAME, layout.text("ParentRef", "Who has it."), layout.AGE), _cells),
    strategy=IPAddressStrategy,
)
