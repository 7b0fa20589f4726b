"""CSIDriver: whether pods have to go where a storage driver is. A partial view."""

from drachma.api import meta
from drachma.api.struct import Struct


class CSIDriverSpec(Struct, frozen=True, kw_only=True):
    """What a driver wants."""

    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(meta.Object, frozen=True, kw_only=True):
    """``storage.k8s.io`` CSIDriver, cluster-scoped; a partial view."""

    spec: CSIDriverSpec = CSIDriverSpec()
