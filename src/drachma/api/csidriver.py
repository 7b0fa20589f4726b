"""CSIDriver: requirements of a storage driver. A partial view."""

from drachma.api import meta
from drachma.api.struct import Struct


class CSIDriverSpec(Struct, frozen=True, kw_only=True):
    """Requirements of a driver."""

    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(meta.Object, frozen=True, kw_only=True):
    """``storage.k8s.io`` CSIDriver, cluster-scoped; a partial view."""

    spec: CSIDriverSpec = CSIDriverSpec()
