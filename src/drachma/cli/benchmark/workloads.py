"""The workloads: how many nodes, what they have, what pods ask for, and what kube-scheduler makes of it.

All run on upstream's parameters. Where upstream has a kind of workload only as a functional test of ten pods on one
node, it is run on a cluster of 500 nodes here, half full, like the largest of the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from drachma import errors
from drachma.cli.benchmark import objects

_NODES: Final = 500
_STEADY_SECONDS: Final = 10.0
_STEADY_PODS: Final = 10

_SELECTOR: Final = (
    f'device.attributes["{objects.DRIVER}"].driverVersion.major() >= 1 && '
    f'device.capacity["{objects.DRIVER}"].memory.isGreaterThan(quantity("1Mi"))'
)


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """One workload.

    A burst creates ``pods`` pods at once and ends when all are bound. A steady one (with ``seconds``) keeps as many
    pods waiting: for each that is bound, it is deleted and another one created.
    """

    name: str
    nodes: int = _NODES
    claims: int = 0
    """Claims that are allocated beforehand."""
    early_pods: int = 0
    """Pods that are scheduled beforehand."""
    pods: int = _STEADY_PODS
    seconds: float = _STEADY_SECONDS
    slices: Callable[[int], list[objects.Document]] = objects.plain_slices
    policies: tuple[objects.Document, ...] = (objects.device_class(),)
    """Classes and taint rules."""
    wanted: objects.Document = msgspec.field(default_factory=objects.claim_spec)
    """What each pod claims."""
    early_wanted: objects.Document | None = None
    """What each claim beforehand asks for, if it is something else."""
    upstream: float | None = None
    """Pods per second that kube-scheduler with kube-apiserver and etcd binds on a machine with two cores."""
    aim: float = 200

    @property
    def is_steady(self) -> bool:
        return self.seconds > 0

    def scaled(self, *, nodes: int | None = None, pods: int | None = None) -> Workload:
        """The same with other numbers; with other nodes, what fills them grows or shrinks with them."""
        changed = self
        if nodes is not None:
            if nodes < 1:
                raise errors.InvalidValueError(f"nodes {nodes}: must be at least 1")
            factor = nodes / self.nodes
            changed = msgspec.structs.replace(
                changed,
                nodes=nodes,
                # What is left free by a full cluster stays free.
                claims=_grown(changed, changed.claims, factor),
                early_pods=_grown(changed, changed.early_pods, factor),
                pods=changed.pods if self.is_steady else max(1, round(changed.pods * factor)),
            )
        if pods is not None:
            if pods < 1:
                raise errors.InvalidValueError(f"pods {pods}: must be at least 1")
            changed = msgspec.structs.replace(changed, pods=pods)
        return changed


def _grown(workload: Workload, count: int, factor: float) -> int:
    left = _STEADY_PODS if "full_" in workload.name else 0
    return max(0, round((count + left) * factor) - left) if count else 0


def _plain(name: str, *, upstream: float, aim: float = 500, **fields: object) -> Workload:
    return msgspec.structs.replace(Workload(name=name, upstream=upstream, aim=aim), **fields)


_BURST: Final = {"claims": 2500, "pods": 2500, "seconds": 0.0}
_MATCHED: Final = objects.claim_spec(
    *(objects.request(f"req-{index}") for index in range(5)),
    constraints=[{"matchAttribute": "resource.kubernetes.io/pciRoot"}],
)
_FIRST: Final[objects.Document] = {
    "name": "req-0",
    "firstAvailable": [
        {"name": "sub-0", "deviceClassName": "no-devices-class"},
        {"name": "sub-1", "deviceClassName": objects.CLASS},
    ],
}
_TOLERANT: Final = objects.claim_spec(objects.request(tolerations=[objects.TOLERATION]))
_SHARED: Final = objects.claim_spec(
    objects.request(count=2, capacity={"requests": {"bandwidth": "2500M"}}),
    constraints=[{"requests": ["req-0"], "distinctAttribute": "dra.example.com/index"}],
)


def _partitioned(level: str, claims: int) -> Workload:
    return Workload(
        name=f"partitionabledevices/{level}_500nodes",
        claims=claims,
        slices=objects.partitioned_slices,
        wanted=objects.claim_spec(objects.request(count=2)),
    )


def _misleading(level: str, claims: int) -> Workload:
    return Workload(
        name=f"partitionabledevices/backtracking_{level}_500nodes",
        claims=claims,
        slices=objects.misleading_slices,
        wanted=objects.claim_spec(objects.request(count=7)),
    )


def _shared(level: str, early_pods: int) -> Workload:
    shareable = f'device.driver == "{objects.DRIVER}" &&\ndevice.allowMultipleAllocations == true'
    return Workload(
        name=f"consumablecapacity/{level}_500nodes",
        early_pods=early_pods,
        slices=objects.shared_slices,
        policies=(objects.device_class(expression=shareable),),
        wanted=_SHARED,
    )


WORKLOADS: Final = (
    _plain("5000pods_500nodes", upstream=22, **_BURST),
    _plain("empty_500nodes", upstream=19),
    _plain("half_500nodes", upstream=21, claims=2500),
    _plain("full_500nodes", upstream=22, claims=4990),
    _plain(
        "selector_empty_500nodes",
        upstream=20,
        wanted=objects.claim_spec(objects.request(selectors=[{"cel": {"expression": _SELECTOR}}])),
    ),
    _plain("match_empty_500nodes", upstream=12, aim=300, wanted=_MATCHED),
    msgspec.structs.replace(
        Workload(
            name="prioritizedlist/5000pods_500nodes",
            policies=(
                objects.device_class(),
                objects.device_class("no-devices-class", expression='device.driver == "no-such-driver.cdi.k8s.io"'),
            ),
            wanted=objects.claim_spec(_FIRST),
            early_wanted=objects.claim_spec(),
        ),
        **_BURST,
    ),
    _partitioned("empty", 0),
    _partitioned("half", 250),
    _partitioned("full", 490),
    _misleading("empty", 0),
    _misleading("half", 250),
    _misleading("full", 490),
    _shared("empty", 0),
    _shared("half", 2000),
    _shared("full", 3990),
    Workload(
        name="devicetaints/5000pods_500nodes",
        early_pods=2500,
        pods=2500,
        seconds=0.0,
        policies=(objects.taint_rule(), objects.device_class()),
        wanted=_TOLERANT,
    ),
)


def find(name: str) -> tuple[Workload, ...]:
    """The workload of a name, those of a folder, or ``all``.

    Raises:
        errors.InvalidValueError: there is none; the message has those that there are.
    """
    found = tuple(each for each in WORKLOADS if name in ("all", each.name, each.name.partition("/")[0]))
    if not found:
        known = ", ".join(each.name for each in WORKLOADS)
        raise errors.InvalidValueError(f"workload {name!r} does not exist: there are all, {known}")
    return found
