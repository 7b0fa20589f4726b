"""Storage drivers, and what they want of Kubernetes."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server import objectmeta
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import cells, layout
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject
from drachma.validation import csi
from drachma.validation.fielderror import Errors

_TYPES: Final = """\
CSIDriver: apiVersion=str kind=str metadata=ObjectMeta! spec=CSIDriverSpec!*
CSIDriverSpec: attachRequired=bool? fsGroupPolicy=str? nodeAllocatableUpdatePeriodSeconds=int64? podInfoOnMount=bool?
    preventPodSchedulingIfMissing=bool? requiresRepublish=bool? seLinuxMount=bool? serviceAccountTokenInSecrets=bool?
    storageCapacity=bool? tokenRequests=[TokenRequest] volumeLifecycleModes={str}
TokenRequest: audience=str* expirationSeconds=int64?
"""
_NUMBERS: Final = """\
CSIDriver: metadata spec
CSIDriverSpec: attachRequired? podInfoOnMount? volumeLifecycleModes storageCapacity? fsGroupPolicy? tokenRequests
    requiresRepublish? seLinuxMount? nodeAllocatableUpdatePeriodSeconds? serviceAccountTokenInSecrets?
    preventPodSchedulingIfMissing?
TokenRequest: audience expirationSeconds?
"""
_TEXTS: Final = """\
CSIDriver: A storage driver, and what it wants of Kubernetes.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.storage.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META,)
)
_DEFAULTS: Final = {
    "attachRequired": True,
    "fsGroupPolicy": "ReadWriteOnceWithFSType",
    "podInfoOnMount": False,
    "preventPodSchedulingIfMissing": False,
    "requiresRepublish": False,
    "seLinuxMount": False,
    "storageCapacity": False,
}


_TOKENS: Final = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible "
    "logging of tokens in volume attributes"
)


class CSIDriverStrategy(DocumentStrategy):
    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        spec = content["spec"] = {**_DEFAULTS, **(content.get("spec") or {})}
        if not spec.get("volumeLifecycleModes"):
            spec["volumeLifecycleModes"] = ["Persistent"]

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from csi.check_driver(subject.metadata.get("name", ""), content["spec"])

    def warnings(self, content: Document, subject: Subject) -> Iterable[str]:
        if content["spec"].get("tokenRequests") and content["spec"].get("serviceAccountTokenInSecrets") is None:
            yield _TOKENS

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from csi.check_driver_update(content["spec"], old["spec"])


def _cells(driver: Document, now: datetime) -> layout.Cells:
    spec = cells.part(driver, "spec")
    audiences = ",".join(each.get("audience", "") for each in spec.get("tokenRequests") or ()) or "<unset>"
    return [
        cells.name(driver),
        spec.get("attachRequired", True),
        spec.get("podInfoOnMount", False),
        spec.get("storageCapacity", False),
        audiences,
        spec.get("requiresRepublish", False),
        ",".join(spec.get("volumeLifecycleModes") or ()) or "<none>",
        cells.since_creation(driver, now),
    ]


def _flag(name: str, description: str) -> layout.Column:
    return layout.Column(name, "boolean", description=description)


KIND: Final = Kind(
    group="storage.k8s.io",
    versions=("v1",),
    plural="csidrivers",
    kind="CSIDriver",
    namespaced=False,
    schemas={"v1": _PACKAGE.object("CSIDriver")},
    layout=layout.Layout(
        (
            layout.NAME,
            _flag("AttachRequired", "Whether volumes must be attached to nodes."),
            _flag("PodInfoOnMount", "Whether the driver is told about pods."),
            _flag("StorageCapacity", "Whether the scheduler looks at the capacity that the driver publishes."),
            layout.text("TokenRequests", "For whom the driver gets tokens of pods' accounts."),
            _flag("RequiresRepublish", "Whether volumes are published again and again."),
            layout.text("Modes", "How volumes live and die."),
            layout.AGE,
        ),
        _cells,
    ),
    strategy=CSIDriverStrategy,
)
