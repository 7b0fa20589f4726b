"""Services: counted, and apart from that their node ports and load balancers."""

from collections.abc import Iterable
from typing import Final

from drachma.accounting.quota import amounts, evaluator
from drachma.api import service
from drachma.api.resourcequota import ScopedResourceSelectorRequirement as Requirement
from drachma.values import quantity

_COUNT: Final = "count/services"
_SERVICES: Final = "services"
_NODE_PORTS: Final = "services.nodeports"
_LOAD_BALANCERS: Final = "services.loadbalancers"
_NAMES: Final = frozenset({_COUNT, _SERVICES, _NODE_PORTS, _LOAD_BALANCERS})


class Services:
    """The evaluator of services; their type may change, so updates count too."""

    model: Final = service.Service
    subresources: Final = frozenset({""})

    def concerns(self, _change: evaluator.Change[service.Service]) -> bool:
        return True

    def counted(self, names: Iterable[str], _facts: evaluator.Facts) -> frozenset[str]:
        return _NAMES & frozenset(names)

    def is_in_scope(self, _subject: service.Service, _requirement: Requirement) -> bool:
        return False

    def omission(self, _subject: service.Service, _required: frozenset[str]) -> str:
        return ""

    def usage(self, subject: service.Service, _facts: evaluator.Facts) -> amounts.Amounts:
        is_balancer = subject.spec.type == "LoadBalancer"
        return {
            _COUNT: amounts.ONE,
            _SERVICES: amounts.ONE,
            _LOAD_BALANCERS: amounts.ONE if is_balancer else amounts.ZERO,
            _NODE_PORTS: quantity.Quantity.from_int(_node_ports(subject.spec)),
        }


def _node_ports(spec: service.ServiceSpec) -> int:
    """By what is asked for, since ports are given out later."""
    if spec.type not in ("NodePort", "LoadBalancer"):
        return 0
    if spec.type == "LoadBalancer" and spec.allocate_load_balancer_node_ports is False:
        return sum(bool(port.node_port) for port in spec.ports)
    return len(spec.ports)
