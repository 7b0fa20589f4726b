"""The daemon set controller: a pod on every node that suits it, replaced node by node."""

from drachma.controllers.daemonset.daemonsetcontroller import DaemonSetController

__all__ = ["DaemonSetController"]
