"""ReplicaSets: as many pods of a template as are wanted."""

from drachma.controllers.replicaset.replicasetcontroller import ReplicaSetController, ReplicationManager

__all__ = ["ReplicaSetController", "ReplicationManager"]
