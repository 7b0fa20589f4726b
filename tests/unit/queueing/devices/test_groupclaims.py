"""Claims that pods share in a PodGroup are charged once for the group."""

from typing import Any

import pytest

from drachma.api import codec, meta, pod
from drachma.queueing.admission import feasibility
from drachma.queueing.admission.topologies import ClaimSource
from drachma.queueing.configuration.configuration import DeviceClassMapping
from drachma.queueing.configuration.gates import DEFAULT
from drachma.queueing.configuration.queueingpolicy import AS_KUEUE, FirstAvailable, QueueingPolicy, Templates
from drachma.queueing.devices import account as deviceaccount
from drachma.queueing.devices import groupclaims
from drachma.queueing.devices import objects as deviceobjects
from drachma.queueing.devices import requests as devicerequests
from drachma.queueing.devices.mappings import DeviceMappings
from drachma.queueing.devices.measure import Measure
from drachma.queueing.devices.objects import DeviceObjects
from drachma.queueing.integrations import pods
from drachma.queueing.kinds import decoding, resourceflavor, workload
from drachma.queueing.workloads import claimsharing, requests, settlement
from tests.unit.queueing.devices import devicecases

_MAPPINGS = DeviceMappings.of(
    [
        DeviceClassMapping(name="large-gpus", device_class_names=("large",)),
        DeviceClassMapping(name="small-gpus", device_class_names=("small",)),
    ]
)
_LARGE = {"name": "gpu", "exactly": {"deviceClassName": "large", "count": 8}}
_SMALL = {"name": "gpu", "exactly": {"deviceClassName": "small"}}
_EITHER = {
    "name": "gpu",
    "firstAvailable": [
        {"name": "large", "deviceClassName": "large", "count": 2},
        {"name": "small", "deviceClassName": "small", "count": 3},
    ],
}
_TEMPLATES = (
    devicecases.template("shared", _LARGE, uid="first"),
    devicecases.template("own", _SMALL, uid="own"),
    devicecases.device_class("large", model="large"),
    devicecases.device_class("small", model="small"),
)
_ENVELOPE = QueueingPolicy(first_available=FirstAvailable.ENVELOPE)


def _group(name: str, *entries: str) -> meta.Object:
    claims = [{"name": each, "resourceClaimTemplateName": each} for each in entries]
    return codec.decode(
        {
            "apiVersion": "scheduling.k8s.io/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-of-{name}"},
            "spec": {"schedulingPolicy": {"basic": {}}, "resourceClaims": claims},
        }
    )


def _workload(*groups: str, count: int = 64, name: str = "job", **metadata: Any) -> workload.Workload:
    """A workload with a pod set for each group, whose pods have a claim of the group and a claim of their own."""
    claims = [{"name": each, "resourceClaimTemplateName": each} for each in ("shared", "own")]
    pod_sets = [
        {
            "name": f"set-{number}",
            "count": count,
            "template": {
                "spec": {
                    "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
                    "resourceClaims": claims,
                    **({"schedulingGroup": {"podGroupName": group}} if group else {}),
                }
            },
        }
        for number, group in enumerate(groups)
    ]
    document = {"metadata": {"name": name, "namespace": "default", "uid": name, **metadata}}
    return decoding.decode({**document, "spec": {"queueName": "team", "podSets": pod_sets}}, workload.Workload)


def _objects(*objects: meta.Object, has_groups: bool = True) -> DeviceObjects:
    return DeviceObjects.of((*_TEMPLATES, *objects), has_groups=has_groups)


def _count(
    wl: workload.Workload, objects: DeviceObjects, policy: QueueingPolicy = AS_KUEUE
) -> devicerequests.DeviceRequests | devicerequests.Refusal:
    return devicerequests.count(wl, objects, _MAPPINGS, gates=DEFAULT, policy=policy)


def _totals(wl: workload.Workload, objects: DeviceObjects) -> list[dict[str, int]]:
    """Return the charges of each pod set for devices."""
    devices = _count(wl, objects)
    assert isinstance(devices, devicerequests.DeviceRequests), devices
    return [
        {name: amount for name, amount in each.requests.items() if name != "cpu"}
        for each in requests.total(wl, devices=devices)
    ]


@pytest.mark.parametrize(
    ("wl", "has_groups", "want"),
    [
        pytest.param(_workload("a"), True, [{"large-gpus": 8, "small-gpus": 64}], id="one-group"),
        pytest.param(_workload("a"), False, [{"large-gpus": 512, "small-gpus": 64}], id="groups-share-nothing"),
        pytest.param(
            _workload("a", "b", count=2),
            True,
            [{"large-gpus": 8, "small-gpus": 2}, {"large-gpus": 8, "small-gpus": 2}],
            id="two-groups",
        ),
        pytest.param(
            _workload("a", "a", count=2),
            True,
            [{"large-gpus": 8, "small-gpus": 2}, {"small-gpus": 2}],
            id="one-group-of-two-sets",
        ),
        pytest.param(_workload("other", count=2), True, [{"large-gpus": 16, "small-gpus": 2}], id="entry-of-pods-only"),
        pytest.param(
            _workload("", annotations={groupclaims.ANNOTATION: '{"set-0": ["shared"]}'}),
            True,
            [{"large-gpus": 8, "small-gpus": 64}],
            id="group-of-the-job",
        ),
        pytest.param(
            _workload("", count=1, annotations={groupclaims.ANNOTATION: "not JSON"}),
            True,
            [{"large-gpus": 8, "small-gpus": 1}],
            id="damaged-annotation",
        ),
    ],
)
def test_a_claim_is_charged_once_for_its_group(
    wl: workload.Workload, *, has_groups: bool, want: list[dict[str, int]]
) -> None:
    objects = _objects(_group("a", "shared"), _group("b", "shared"), _group("other"), has_groups=has_groups)
    assert _totals(wl, objects) == want


def test_the_charge_of_a_group_does_not_depend_on_partial_admission() -> None:
    wl = _workload("a", count=4)
    devices = _count(wl, _objects(_group("a", "shared")))
    assert isinstance(devices, devicerequests.DeviceRequests)
    (whole,) = requests.total(wl, devices=devices)
    assert whole.scaled(2).requests == {"cpu": 2000, "large-gpus": 8, "small-gpus": 2}


def test_a_workload_waits_for_its_group() -> None:
    refusal = _count(_workload("a"), _objects())
    assert isinstance(refusal, devicerequests.Refusal)
    assert refusal.is_retried
    assert refusal.message == (
        "spec.podSets[0].template.spec.schedulingGroup.podGroupName: Internal error: "
        'failed to get PodGroup a: podgroups.scheduling.k8s.io "a" not found'
    )


def test_a_group_claim_that_cannot_be_counted_is_refused() -> None:
    objects = DeviceObjects.of(
        (devicecases.template("shared", _EITHER), *_TEMPLATES[1:], _group("a", "shared")), has_groups=True
    )
    refusal = _count(_workload("a"), objects)
    assert isinstance(refusal, devicerequests.Refusal)
    assert "ResourceClaimTemplate shared: FirstAvailable device selection is not supported" in refusal.message
    missing = _count(_workload("a"), DeviceObjects.of((*_TEMPLATES[1:], _group("a", "shared")), has_groups=True))
    assert isinstance(missing, devicerequests.Refusal)
    assert 'resourceclaimtemplates.resource.k8s.io "shared" not found' in missing.message


# Settlement


def _admitted(
    objects: DeviceObjects, *, groups: tuple[str, ...] = ("a",), policy: QueueingPolicy = _ENVELOPE
) -> workload.Workload:
    """Return a workload of two pods a set, admitted with its upper bounds."""
    wl = _workload(*groups, count=2)
    devices = _count(wl, objects, policy)
    assert isinstance(devices, devicerequests.DeviceRequests), devices
    assignments = [
        {
            "name": each.name,
            "count": 2,
            "flavors": dict.fromkeys(each.requests, "default"),
            "resourceUsage": {
                name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in each.requests.items()
            },
        }
        for each in requests.total(wl, devices=devices)
    ]
    document = {"admission": {"clusterQueue": "team", "podSetAssignments": assignments}}
    status = decoding.decode({"status": document}, workload.Workload).status
    return deviceaccount.with_account(
        workload.Workload(metadata=wl.metadata, spec=wl.spec, status=status), devices, paid={}
    )


_EITHER_OBJECTS = DeviceObjects.of(
    (
        devicecases.template("shared", _EITHER),
        *_TEMPLATES[1:],
        _group("a", "shared"),
        devicecases.device_slice(
            "n",
            [devicecases.device("l", "large"), devicecases.device("s0", "small"), devicecases.device("s1", "small")],
        ),
    ),
    has_groups=True,
)


def _usage(wl: workload.Workload | settlement.Overdrawn) -> list[dict[str, str]]:
    assert isinstance(wl, workload.Workload), wl
    assert wl.status.admission is not None
    return [
        {name: str(amount) for name, amount in each.resource_usage.items()}
        for each in wl.status.admission.pod_set_assignments
    ]


class _Claims:
    """Claims with their devices, by name."""

    def __init__(self, **results: list[tuple[str, str]]) -> None:
        self._results = results

    def get(self, namespace: str, name: str) -> Any:
        if name not in self._results:
            return None
        results = [
            {"request": request, "driver": "gpus.example.com", "pool": "n", "device": device}
            for request, device in self._results[name]
        ]
        document = codec.encode(devicecases.claim(name, _EITHER if name == "shared" else _SMALL))
        return codec.decode({**document, "status": {"allocation": {"devices": {"results": results}}}})


def _use(wl: workload.Workload, claims: _Claims, pod_set: int = 0) -> settlement.PodUse:
    of_set = wl.spec.pod_sets[pod_set]
    statuses = tuple(
        pod.PodResourceClaimStatus(name=each.name, resource_claim_name=each.name)
        for each in of_set.template.spec.resource_claims
    )
    subject = pod.Pod(
        metadata=meta.ObjectMeta(name="p", namespace="default", labels={"kueue.x-k8s.io/podset": of_set.name}),
        spec=of_set.template.spec,
        status=pod.PodStatus(resource_claim_statuses=statuses),
    )
    account = deviceaccount.read(wl)
    assert account is not None
    use = settlement.use(
        subject,
        claims,
        deviceobjects.devices_by_id(_EITHER_OBJECTS),
        measure=Measure(_MAPPINGS, DEFAULT, _ENVELOPE),
        account=account,
    )
    assert use is not None
    return use


_THREE_SMALL = [("gpu/small", "s0"), ("gpu/small", "s1"), ("gpu/small", "s0")]
_ONE_LARGE = [("gpu/large", "l")]


def test_the_claim_of_a_group_is_settled_once() -> None:
    before = _admitted(_EITHER_OBJECTS)
    assert _usage(before) == [{"cpu": "2", "large-gpus": "2", "small-gpus": "5"}]
    use = _use(before, _Claims(shared=_ONE_LARGE))
    assert use == settlement.PodUse("set-0", None, {"shared": {"large-gpus": 1}})
    after = settlement.settle(before, [use, use], gates=DEFAULT)
    assert _usage(after) == [{"cpu": "2", "large-gpus": "1", "small-gpus": "2"}]
    assert isinstance(after, workload.Workload)
    assert settlement.message(before, after) == (
        "Settled to the allocated devices: set-0: small-gpus 2 of 5, set-0: large-gpus 1 of 2"
    )
    again = settlement.settle(after, [_use(after, _Claims())], gates=DEFAULT)
    assert again is after, "a claim that is not allocated any more raises nothing"
    whole = [_use(after, _Claims(shared=_ONE_LARGE, own=[("gpu", "s0")]))] * 2
    assert settlement.settle(after, whole, gates=DEFAULT) is after


def test_a_group_whose_claim_gets_more_than_is_left_is_overdrawn() -> None:
    before = _admitted(_EITHER_OBJECTS)
    after = settlement.settle(before, [_use(before, _Claims(shared=_ONE_LARGE))], gates=DEFAULT)
    assert isinstance(after, workload.Workload)
    overdrawn = settlement.settle(after, [_use(after, _Claims(shared=_THREE_SMALL))], gates=DEFAULT)
    assert overdrawn == settlement.Overdrawn("set-0", "small-gpus", 3, 2)


def test_the_pod_set_that_pays_for_a_group_is_settled_by_pods_of_the_other() -> None:
    before = _admitted(_EITHER_OBJECTS, groups=("a", "a"))
    assert _usage(before) == [{"cpu": "2", "large-gpus": "2", "small-gpus": "5"}, {"cpu": "2", "small-gpus": "2"}]
    after = settlement.settle(before, [_use(before, _Claims(shared=_ONE_LARGE), pod_set=1)], gates=DEFAULT)
    assert _usage(after) == [{"cpu": "2", "large-gpus": "1", "small-gpus": "2"}, {"cpu": "2", "small-gpus": "2"}]


def test_workloads_of_one_group_pay_once() -> None:
    first = _admitted(_EITHER_OBJECTS)
    second = _workload("a", count=2, name="second")
    devices = _count(second, _EITHER_OBJECTS, _ENVELOPE)
    assert isinstance(devices, devicerequests.DeviceRequests)
    paid = claimsharing.paid_shares(devices, "default", [first])
    unpaid = claimsharing.unpaid_requests(devices, paid)
    assert [dict(each.requests) for each in requests.total(second, devices=unpaid)] == [{"cpu": 2000, "small-gpus": 2}]
    other = _count(_workload("a", name="second"), _objects(_group("b", "shared"), _group("a", "shared")))
    assert isinstance(other, devicerequests.DeviceRequests)
    assert list(paid) == ["a/shared"] == list(other.shared)


def test_a_template_made_again_with_more_devices_for_a_group_is_a_problem() -> None:
    pinned = QueueingPolicy(templates=Templates.PINNED)
    wl = _admitted(_objects(_group("a", "shared")), policy=pinned)
    larger = {"name": "gpu", "exactly": {"deviceClassName": "large", "count": 9}}
    problem = (
        'ResourceClaimTemplate "shared" recreated since it was counted: claim a/shared needs 9 of large-gpus and has 8'
    )
    for request, want in ((_LARGE, None), (larger, problem)):
        objects = DeviceObjects.of(
            (devicecases.template("shared", request, uid="second"), *_TEMPLATES[1:], _group("a", "shared")),
            has_groups=True,
        )
        assert deviceaccount.template_problem(wl, objects, _MAPPINGS, gates=DEFAULT, policy=pinned) == want


# Places


def test_places_must_have_the_devices_of_pods_themselves() -> None:
    wl = _workload("a")
    (pod_set,) = wl.spec.pod_sets
    shared = ClaimSource(_objects(_group("a", "shared"))).claims(wl, pod_set)
    assert [each.metadata.name for each in shared] == ["own"]
    alone = ClaimSource(_objects(_group("a", "shared"), has_groups=False)).claims(wl, pod_set)
    assert [each.metadata.name for each in alone] == ["shared", "own"]


def test_the_first_pod_of_a_group_is_placed_with_its_claim() -> None:
    objects = _objects(_group("a", "shared"))
    wl = _admitted(objects, groups=("a", "a"))
    flavors = {"default": decoding.decode({"metadata": {"name": "default"}}, resourceflavor.ResourceFlavor)}
    claims = [
        [claim.name for claim in each.spec.resource_claims]
        for each in feasibility.pods(wl, flavors, groups=objects.groups)
    ]
    assert claims == [["shared", "own"], ["own"], ["own"], ["own"]]


def test_pods_of_two_groups_have_two_roles() -> None:
    claims = [{"name": "shared", "resourceClaimTemplateName": "shared"}]
    roles = [
        pods.role_hash({"resourceClaims": claims, "schedulingGroup": {"podGroupName": name}}) for name in ("a", "b")
    ]
    assert len({*roles, pods.role_hash({"resourceClaims": claims})}) == 3
    assert pods.role_hash({"schedulingGroup": {"podGroupName": "a"}}) == pods.role_hash({}), "they share no claims"
