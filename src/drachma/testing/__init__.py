"""For tests of drachma and of what is built on it: clusters in process, and builders for every kind.

``cluster`` and ``sync_cluster`` are a whole control plane with nodes (:mod:`drachma.testing.clusters`); pytest has it
as the fixture ``drachma_cluster``. Never imported by the product.

A builder is immutable: each method gives a new one, ``build()`` gives the object.

>>> claim("c").request("gpu", device_class="gpu.example.com", count=2).build().spec.devices.requests[0].exactly.count
2
"""

from typing import TYPE_CHECKING, Any

from drachma.driver.devices import DeviceBuilder, device
from drachma.testing.claims import ClaimBuilder, ClaimTemplateBuilder, claim, claim_template, subrequest
from drachma.testing.policy import DeviceClassBuilder, SliceBuilder, device_class, resource_slice, taint_rule
from drachma.testing.workloads import PodBuilder, event, job, lease, namespace, node, pod, resource_quota

if TYPE_CHECKING:
    from drachma.testing.clusters import Cluster, cluster
    from drachma.testing.syncclusters import SyncCluster, sync_cluster

__all__ = [
    "ClaimBuilder",
    "ClaimTemplateBuilder",
    "Cluster",
    "DeviceBuilder",
    "DeviceClassBuilder",
    "PodBuilder",
    "SliceBuilder",
    "SyncCluster",
    "claim",
    "claim_template",
    "cluster",
    "device",
    "device_class",
    "event",
    "job",
    "lease",
    "namespace",
    "node",
    "pod",
    "resource_quota",
    "resource_slice",
    "subrequest",
    "sync_cluster",
    "taint_rule",
]


def __getattr__(name: str) -> Any:
    """Load a control plane only for tests that use one."""
    if name in ("Cluster", "cluster"):
        from drachma.testing import clusters

        return getattr(clusters, name)
    if name in ("SyncCluster", "sync_cluster"):
        from drachma.testing import syncclusters

        return getattr(syncclusters, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
