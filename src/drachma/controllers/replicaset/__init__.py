"""ReplicaSets: keeps the desired number of pods of a template."""

from drachma.controllers.replicaset.replicasetcontroller import ReplicaSetController, ReplicationManager

__all__ = ["ReplicaSetController", "ReplicationManager"]
