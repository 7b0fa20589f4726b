"""The daemon set controller: runs a pod on every suitable node, and replaces pods node by node."""

from drachma.controllers.daemonset.daemonsetcontroller import DaemonSetController

__all__ = ["DaemonSetController"]
