"""Workloads: the number of nodes, their devices, the claims of pods, and kube-scheduler's rate.

All have upstream's parameters. Workloads that upstream has only as functional tests, with ten pods on one node, run on
500 nodes here, half full, like the largest of the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from drachma import errors
from drachma.api import gates as features
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

    A burst creates ``pods`` pods at once and ends when all are bound. A steady workload (with ``seconds``) keeps this
    number of pods pending: each bound pod is deleted and another one is created.
    """

    name: str
    nodes: int = _NODES
    claims: int = 0
    """Claims that are allocated before the measurement."""
    early_pods: int = 0
    """Pods that are scheduled before the measurement."""
    pods: int = _STEADY_PODS
    seconds: float = _STEADY_SECONDS
    slices: Callable[[int], list[objects.Document]] = objects.plain_slices
    policies: tuple[objects.Document, ...] = (objects.device_class(),)
    """Classes and taint rules."""
    claim_spec: objects.Document = msgspec.field(default_factory=objects.claim_spec)
    """Spec of the claim of each pod."""
    early_claim_spec: objects.Document | None = None
    """Spec of the claims before the measurement, if it differs."""
    groups: int = 0
    """PodGroups that the measured pods belong to in turn; the pods of a group share one claim."""
    generates_group_claims: bool = False
    """True if the claims of groups come from the template."""
    upstream: float | None = None
    """Pods per second that kube-scheduler with kube-apiserver and etcd binds on a machine with two cores."""
    aim: float = 200

    @property
    def gates(self) -> features.Gates:
        """Feature gates of the workload."""
        if not self.groups:
            return features.ALL
        return features.ALL.switched(
            {features.Gate.GENERIC_WORKLOAD: True, features.Gate.WORKLOAD_RESOURCE_CLAIMS: True}
        )

    @property
    def is_steady(self) -> bool:
        return self.seconds > 0

    def scaled(self, *, nodes: int | None = None, pods: int | None = None) -> Workload:
        """Return the workload with other numbers; the number of nodes also scales the initial claims and pods."""
        workload = self
        if nodes is not None:
            if nodes < 1:
                raise errors.InvalidValueError(f"nodes {nodes}: must be at least 1")
            factor = nodes / self.nodes
            workload = msgspec.structs.replace(
                workload,
                nodes=nodes,
                # A full cluster keeps the same number of free devices.
                claims=_scale(workload, workload.claims, factor),
                early_pods=_scale(workload, workload.early_pods, factor),
                pods=workload.pods if self.is_steady else max(1, round(workload.pods * factor)),
            )
        if pods is not None:
            if pods < 1:
                raise errors.InvalidValueError(f"pods {pods}: must be at least 1")
            workload = msgspec.structs.replace(workload, pods=pods)
        return workload


def _scale(workload: Workload, count: int, factor: float) -> int:
    free = _STEADY_PODS if "full_" in workload.name else 0
    return max(0, round((count + free) * factor) - free) if count else 0


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
        claim_spec=objects.claim_spec(objects.request(count=2)),
    )


def _misleading(level: str, claims: int) -> Workload:
    return Workload(
        name=f"partitionabledevices/backtracking_{level}_500nodes",
        claims=claims,
        slices=objects.misleading_slices,
        claim_spec=objects.claim_spec(objects.request(count=7)),
    )


def _shared(level: str, early_pods: int) -> Workload:
    shareable = f'device.driver == "{objects.DRIVER}" &&\ndevice.allowMultipleAllocations == true'
    return Workload(
        name=f"consumablecapacity/{level}_500nodes",
        early_pods=early_pods,
        slices=objects.shared_slices,
        policies=(objects.device_class(expression=shareable),),
        claim_spec=_SHARED,
    )


def _grouped(name: str, *, generates_group_claims: bool) -> Workload:
    return Workload(
        name=f"workloadresourceclaims/{name}_100podgroups_5000pods",
        nodes=50,
        pods=5000,
        seconds=0.0,
        slices=objects.no_slices,
        groups=100,
        generates_group_claims=generates_group_claims,
    )


WORKLOADS: Final = (
    _plain("5000pods_500nodes", upstream=22, **_BURST),
    _plain("empty_500nodes", upstream=19),
    _plain("half_500nodes", upstream=21, claims=2500),
    _plain("full_500nodes", upstream=22, claims=4990),
    _plain(
        "selector_empty_500nodes",
        upstream=20,
        claim_spec=objects.claim_spec(objects.request(selectors=[{"cel": {"expression": _SELECTOR}}])),
    ),
    _plain("match_empty_500nodes", upstream=12, aim=300, claim_spec=_MATCHED),
    msgspec.structs.replace(
        Workload(
            name="prioritizedlist/5000pods_500nodes",
            policies=(
                objects.device_class(),
                objects.device_class("no-devices-class", expression='device.driver == "no-such-driver.cdi.k8s.io"'),
            ),
            claim_spec=objects.claim_spec(_FIRST),
            early_claim_spec=objects.claim_spec(),
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
        claim_spec=_TOLERANT,
    ),
    _grouped("claim", generates_group_claims=False),
    _grouped("template", generates_group_claims=True),
)


def find(name: str) -> tuple[Workload, ...]:
    """Return the workload of a name, the workloads of a folder, or ``all`` workloads.

    Raises:
        errors.InvalidValueError: there is none; the message lists the names.
    """
    selected = tuple(each for each in WORKLOADS if name in ("all", each.name, each.name.partition("/")[0]))
    if not selected:
        names = ", ".join(each.name for each in WORKLOADS)
        raise errors.InvalidValueError(f"workload {name!r} does not exist: there are all, {names}")
    return selected
