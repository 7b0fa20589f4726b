"""Workloads: the number of nodes, their devices, the claims of pods, and kube-scheduler's rate.

Those with claims have upstream's parameters. Workloads that upstream has only as functional tests, with ten pods on one
node, run on 500 nodes here, half full, like the largest of the others. The ``plain`` ones, without claims, have the
parameters of upstream's benchmarks of the other plugins; with fewer nodes, there are fewer pods in proportion.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec

from drachma import errors
from drachma.api import gates as features
from drachma.cli.benchmark import objects, plainpods

_NODES: Final = 500
_STEADY_SECONDS: Final = 10.0
_STEADY_PODS: Final = 10

_SELECTOR: Final = (
    f'device.attributes["{objects.DRIVER}"].driverVersion.major() >= 1 && '
    f'device.capacity["{objects.DRIVER}"].memory.isGreaterThan(quantity("1Mi"))'
)


MakePod: TypeAlias = Callable[[str, int], objects.Document]
"""Function from a namespace and the number of a pod to the pod."""


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
    pod: MakePod = objects.pod
    early_pod: MakePod | None = None
    """Pods before the measurement, if they differ."""
    pods_share_claims: bool = False
    """True if the pods use claims that exist before them, in groups of five."""
    zones: int = 0
    """Number of zones that the nodes are in."""
    node_pods: int = 110
    """Number of pods that fit on a node."""
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

    def new_pod(self, number: int) -> objects.Document:
        """Return a measured pod."""
        if self.groups:
            return objects.group_member(number % self.groups, is_generated=self.generates_group_claims)
        return self.pod(objects.MEASURED, number)

    def new_early_pod(self, number: int) -> objects.Document:
        """Return a pod before the measurement."""
        return (self.early_pod or self.pod)(objects.INIT, number)

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


def _compatible(level: str, claims: int) -> Workload:
    return msgspec.structs.replace(
        _partitioned(level, claims), name=f"compatibilitygroups/{level}_500nodes", slices=objects.compatible_slices
    )


def _extended(name: str, *, classes: int, resource: str, **fields: object) -> Workload:
    """Return a workload with a resource for each class, in turn. A blank ``resource`` means the name of the class."""
    names = [f"{resource}-{number}" if resource else "" for number in range(classes)]
    prefix = resource or f"deviceclass.resource.kubernetes.io/{objects.CLASS}"
    workload = Workload(
        name=f"extendedresource/{name}",
        early_pods=2500,
        pods=2500,
        seconds=0.0,
        policies=tuple(objects.extended_class(number, each) for number, each in enumerate(names)),
        pod=functools.partial(objects.extended_pod, resources=tuple(f"{prefix}-{number}" for number in range(classes))),
    )
    return msgspec.structs.replace(workload, **fields)


_SCORED: Final = "example.com/gpu"


def _plain_pods(name: str, pod: MakePod, *, pods: int, **fields: object) -> Workload:
    """Return a workload without claims. Its aim is the rate below which upstream's own run fails, if it has one."""
    workload = Workload(
        name=f"plain/{name}", nodes=5000, pods=pods, seconds=0.0, slices=objects.no_slices, policies=(), pod=pod
    )
    return msgspec.structs.replace(workload, **fields)


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
    Workload(
        name="resourceclaim/5000pods_500nodes",
        early_pods=2500,
        pods=2500,
        seconds=0.0,
        pod=objects.sharing_pod,
        pods_share_claims=True,
    ),
    _compatible("empty", 0),
    _compatible("half", 250),
    _compatible("full", 490),
    Workload(
        name="listattributes/empty_500nodes",
        pods=500,
        slices=objects.listed_slices,
        claim_spec=objects.claim_spec(
            *(objects.request(f"req-{index}") for index in range(32)),
            constraints=[{"matchAttribute": "dra.example.com/match"}],
        ),
    ),
    _extended("explicit_25classes_5000pods_500nodes", classes=25, resource=_SCORED),
    _extended("explicit_50classes_5000pods_500nodes", classes=50, resource=_SCORED),
    _extended("implicit_25classes_5000pods_500nodes", classes=25, resource=""),
    # Differs from upstream: the score is that of CPU and memory, and does not count the extended resource.
    _extended(
        "scoring_5000pods_500nodes",
        classes=20,
        resource=_SCORED,
        early_pods=0,
        pods=5000,
        policies=tuple(objects.extended_class(number, _SCORED) for number in range(20)),
        pod=functools.partial(objects.extended_pod, resources=(_SCORED,)),
    ),
    _plain_pods("basic_5000nodes_10000pods", plainpods.pod, early_pods=1000, pods=10_000, aim=680),
    _plain_pods("basic_5000nodes_50000pods", plainpods.pod, early_pods=5000, pods=50_000, aim=790),
    _plain_pods("daemonset_15000nodes", plainpods.node_pod, nodes=15_000, pods=30_000, node_pods=90_000, aim=1100),
    _plain_pods("podantiaffinity_5000nodes", plainpods.repelling_pod, early_pods=1000, pods=2000, aim=180),
    _plain_pods(
        "podmatchingantiaffinity_5000nodes",
        plainpods.repelled_pod,
        early_pods=1000,
        early_pod=plainpods.repelling_pod,
        pods=5000,
        aim=540,
    ),
    _plain_pods("podaffinity_5000nodes", plainpods.attracted_pod, early_pods=5000, pods=5000, zones=1, aim=70),
    _plain_pods("preferredpodaffinity_5000nodes", plainpods.preferring_pod, early_pods=5000, pods=5000, aim=160),
    _plain_pods("preferredpodantiaffinity_5000nodes", plainpods.shunning_pod, early_pods=5000, pods=5000, aim=190),
    _plain_pods("nodeaffinity_5000nodes", plainpods.zoned_pod, early_pods=5000, pods=10_000, zones=1, aim=540),
    _plain_pods(
        "mixed_5000nodes",
        plainpods.pod,
        early_pods=10_000,
        early_pod=plainpods.mixed_pod,
        pods=5000,
        zones=1,
        aim=540,
    ),
    _plain_pods(
        "topologyspreading_5000nodes",
        plainpods.spread_pod,
        early_pods=5000,
        early_pod=plainpods.pod,
        pods=5000,
        zones=3,
        aim=460,
    ),
    _plain_pods(
        "preferredtopologyspreading_5000nodes",
        plainpods.softly_spread_pod,
        early_pods=5000,
        early_pod=plainpods.pod,
        pods=5000,
        zones=3,
        aim=340,
    ),
    _plain_pods(
        "preemption_1000nodes",
        plainpods.important_pod,
        nodes=1000,
        early_pods=4000,
        early_pod=plainpods.unimportant_pod,
        pods=1000,
        policies=(plainpods.priority_class(),),
    ),
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
