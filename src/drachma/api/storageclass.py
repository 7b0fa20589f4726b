"""StorageClass: provisioner, topology and binding mode of volumes. A partial view."""

from typing import Final

from drachma.api import meta
from drachma.api.struct import ABSENT_TEXT, ABSENT_TUPLE, ZERO_TEXT, Struct

WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"
"""Mode that binds a claim once a pod that uses it has a node."""

NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"


class TopologySelectorLabelRequirement(Struct, frozen=True, kw_only=True):
    """A label of nodes and its allowed values."""

    key: str = ZERO_TEXT
    values: tuple[str, ...] = ABSENT_TUPLE


class TopologySelectorTerm(Struct, frozen=True, kw_only=True):
    """Conjunction of label requirements."""

    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ABSENT_TUPLE


class StorageClass(meta.Object, frozen=True, kw_only=True):
    """``storage.k8s.io`` StorageClass, cluster-scoped; a partial view."""

    provisioner: str = ABSENT_TEXT
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ABSENT_TUPLE
