"""ReplicationController: predecessor of the ReplicaSet. A partial view."""

from collections.abc import Mapping
from typing import Any

from drachma.api import meta, replicaset
from drachma.api.struct import ABSENT_INT, ABSENT_MAP, Int32, Struct


class ReplicationControllerSpec(Struct, frozen=True, kw_only=True):
    """Number, selector and template of the pods."""

    replicas: Int32 | None = None
    min_ready_seconds: Int32 = ABSENT_INT
    selector: Mapping[str, str] = ABSENT_MAP
    template: Mapping[str, Any] = ABSENT_MAP


class ReplicationController(meta.Object, frozen=True, kw_only=True):
    """Core ReplicationController, namespaced."""

    spec: ReplicationControllerSpec = ReplicationControllerSpec()
    status: replicaset.ReplicaCounts = replicaset.ReplicaCounts()
