"""Which kind has which strategy."""

from collections.abc import Mapping
from typing import Final

from drachma.api import gates as feature
from drachma.server.kinds import clusterkinds, pods, workloads
from drachma.server.kinds.document import DocumentStrategy
from drachma.server.surface import resources
from drachma.store import protocol

_BY_KIND: Final[Mapping[str, type[DocumentStrategy]]] = {
    "ConfigMap": clusterkinds.ConfigMapStrategy,
    "Deployment": workloads.DeploymentStrategy,
    "Event": clusterkinds.EventStrategy,
    "Job": workloads.JobStrategy,
    "Lease": clusterkinds.LeaseStrategy,
    "Namespace": clusterkinds.NamespaceStrategy,
    "Node": clusterkinds.NodeStrategy,
    "PriorityClass": clusterkinds.PriorityClassStrategy,
    "ReplicaSet": workloads.ReplicaSetStrategy,
    "ResourceQuota": clusterkinds.ResourceQuotaStrategy,
    "Secret": clusterkinds.SecretStrategy,
    "ServiceAccount": clusterkinds.ServiceAccountStrategy,
}


def strategies(
    catalog: resources.Catalog, *, gates: feature.Gates, store: protocol.Store
) -> dict[str, DocumentStrategy]:
    """The strategies of all resources that are kept as documents, by the resource's key."""
    chosen: dict[str, DocumentStrategy] = {}
    for resource in catalog.resources:
        if resource.model is not None and resource.model.complete:
            continue
        if resource.kind == "Pod":
            chosen[resource.key] = pods.PodStrategy(resource, gates=gates, store=store)
        else:
            chosen[resource.key] = _BY_KIND[resource.kind](resource)
    return chosen
