"""The stateful set controller: pods with names and volumes of their own, made, replaced and taken away in order."""

from drachma.controllers.statefulset.statefulsetcontroller import StatefulSetController

__all__ = ["StatefulSetController"]
