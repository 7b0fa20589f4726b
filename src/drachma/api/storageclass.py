"""StorageClass: who provides volumes of a class, where, and when they are bound. A partial view."""

from typing import Final

from drachma.api import meta
from drachma.api.struct import ABSENT_TEXT, ABSENT_TUPLE, ZERO_TEXT, Struct

WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"
"""The mode in which a claim is bound once a pod that uses it has a node."""

NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"


class TopologySelectorLabelRequirement(Struct, frozen=True, kw_only=True):
    """A label of nodes and the values that will do."""

    key: str = ZERO_TEXT
    values: tuple[str, ...] = ABSENT_TUPLE


class TopologySelectorTerm(Struct, frozen=True, kw_only=True):
    """Labels that a node must have, all of them."""

    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ABSENT_TUPLE


class StorageClass(meta.Object, frozen=True, kw_only=True):
    """``storage.k8s.io`` StorageClass, cluster-scoped; a partial view."""

    provisioner: str = ABSENT_TEXT
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ABSENT_TUPLE
