"""Object counts: any kind can be limited by ``count/<plural>.<group>``, and a few by a name of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from drachma.accounting.quota import evaluator
from drachma.api import meta, service
from drachma.api.resourcequota import ScopedResourceSelectorRequirement as Requirement
from drachma.values import quantity

PREFIX: Final = "count/"

_OWN_NAMES: Final = frozenset({"configmaps", "replicationcontrollers", "resourcequotas", "secrets"})
"""Core kinds whose plural is also the name of a resource."""


def name(group: str, plural: str) -> str:
    """Return the resource that counts the objects of a kind."""
    return f"{PREFIX}{plural}.{group}" if group else f"{PREFIX}{plural}"


class ObjectCount:
    """Evaluator of kinds of which only the number counts."""

    model: Final = meta.Object
    subresources: Final = frozenset({""})
    owed: Final[frozenset[str]] = frozenset()

    def __init__(self, group: str, plural: str) -> None:
        names = {name(group, plural)} | ({plural} & _OWN_NAMES if not group else set())
        self._usage: Final = dict.fromkeys(sorted(names), evaluator.ONE)

    def concerns(self, change: evaluator.Change[meta.Object]) -> bool:
        return change.old is None

    def counted(self, names: Iterable[str], _facts: evaluator.Facts) -> frozenset[str]:
        return frozenset(names) & self._usage.keys()

    def is_in_scope(self, _subject: meta.Object, _requirement: Requirement) -> bool:
        return False

    def omission(self, _subject: meta.Object, _required: frozenset[str]) -> str:
        return ""

    def usage(self, _subject: meta.Object, _facts: evaluator.Facts) -> evaluator.Amounts:
        return self._usage


_COUNT: Final = "count/services"
_SERVICES: Final = "services"
_NODE_PORTS: Final = "services.nodeports"
_LOAD_BALANCERS: Final = "services.loadbalancers"
_NAMES: Final = frozenset({_COUNT, _SERVICES, _NODE_PORTS, _LOAD_BALANCERS})


class Services:
    """Evaluator of services. Their type may change, so updates count too."""

    model: Final = service.Service
    subresources: Final = frozenset({""})
    owed: Final[frozenset[str]] = frozenset()

    def concerns(self, _change: evaluator.Change[service.Service]) -> bool:
        return True

    def counted(self, names: Iterable[str], _facts: evaluator.Facts) -> frozenset[str]:
        return _NAMES & frozenset(names)

    def is_in_scope(self, _subject: service.Service, _requirement: Requirement) -> bool:
        return False

    def omission(self, _subject: service.Service, _required: frozenset[str]) -> str:
        return ""

    def usage(self, subject: service.Service, _facts: evaluator.Facts) -> evaluator.Amounts:
        is_balancer = subject.spec.type == "LoadBalancer"
        return {
            _COUNT: evaluator.ONE,
            _SERVICES: evaluator.ONE,
            _LOAD_BALANCERS: evaluator.ONE if is_balancer else evaluator.ZERO,
            _NODE_PORTS: quantity.Quantity.from_int(_node_ports(subject.spec)),
        }


def _node_ports(spec: service.ServiceSpec) -> int:
    """Return the number of requested node ports, since ports are assigned later."""
    if spec.type not in ("NodePort", "LoadBalancer"):
        return 0
    if spec.type == "LoadBalancer" and spec.allocate_load_balancer_node_ports is False:
        return sum(bool(port.node_port) for port in spec.ports)
    return len(spec.ports)
