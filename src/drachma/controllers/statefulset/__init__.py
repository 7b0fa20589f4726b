"""The stateful set controller: pods with stable names and volumes, created, replaced and deleted in order."""

from drachma.controllers.statefulset.statefulsetcontroller import StatefulSetController

__all__ = ["StatefulSetController"]
