"""Settlement: charges become those of the allocated devices, and never grow."""

from datetime import UTC, datetime

import pytest

from drachma.api import meta, pod
from drachma.queueing.configuration.gates import DEFAULT
from drachma.queueing.devices import account as deviceaccount
from drachma.queueing.devices.measure import Measure
from drachma.queueing.devices.requests import DeviceRequests
from drachma.queueing.kinds import decoding, workload
from drachma.queueing.rules import workloadrules
from drachma.queueing.workloads import requests, settlement
from drachma.queueing.workloads.settlement import Overdrawn, PodUse
from drachma.values import quantity


def _admitted(count: int, *, reclaimable: int = 0, **usage: int) -> workload.Workload:
    """A workload whose pods have a cpu each, and an envelope of one fast or two slow devices."""
    pod_set = {"name": "main", "count": count}
    assignment = {
        "name": "main",
        "count": count,
        "flavors": {"cpu": "default", "fast": "default", "slow": "default"},
        "resourceUsage": {name: str(amount) for name, amount in usage.items()},
    }
    status = {
        "admission": {"clusterQueue": "team", "podSetAssignments": [assignment]},
        "reclaimablePods": [{"name": "main", "count": reclaimable}] if reclaimable else [],
        "conditions": [
            {
                "type": "QuotaReserved",
                "status": "True",
                "reason": "QuotaReserved",
                "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
        ],
    }
    metadata = {"name": "job", "namespace": "default", "uid": "job"}
    document = {"metadata": metadata, "spec": {"podSets": [pod_set]}, "status": status}
    charges = {"fast": quantity.Quantity.from_int(1), "slow": quantity.Quantity.from_int(2)}
    return deviceaccount.with_account(
        decoding.decode(document, workload.Workload),
        DeviceRequests(settled={"main": charges}, charges={"main": charges}),
        paid={},
    )


def _use(**charges: int) -> PodUse:
    return PodUse("main", charges)


_UNKNOWN = PodUse("main", None)


@pytest.mark.parametrize(
    ("uses", "want"),
    [
        pytest.param([], {"cpu": "2", "fast": "2", "slow": "4"}, id="no-pod-yet"),
        pytest.param([_UNKNOWN], {"cpu": "2", "fast": "2", "slow": "4"}, id="nothing-allocated-yet"),
        pytest.param([_use(fast=1), _UNKNOWN], {"cpu": "2", "fast": "2", "slow": "2"}, id="one-pod"),
        pytest.param([_use(fast=1), _use(slow=2)], {"cpu": "2", "fast": "1", "slow": "2"}, id="each-with-its-own"),
        pytest.param([_use(slow=1), _use(slow=2)], {"cpu": "2", "fast": "0", "slow": "3"}, id="less-than-was-thought"),
        pytest.param(
            [_use(fast=1), _use(fast=1), _use(fast=1)],
            {"cpu": "2", "fast": "2", "slow": "4"},
            id="more-pods-than-should-be",
        ),
        pytest.param([PodUse("other", {"fast": 9})], {"cpu": "2", "fast": "2", "slow": "4"}, id="other-pod-set"),
    ],
)
def test_usage_is_what_is_allocated_or_may_be(uses: list[PodUse], want: dict[str, str]) -> None:
    before = _admitted(2, cpu=2, fast=2, slow=4)
    after = settlement.settle(before, uses, gates=DEFAULT)
    assert isinstance(after, workload.Workload)
    assert _usage(after) == want
    assert (after is before) == (_usage(before) == want)
    assert not workloadrules.check(after, before)


def test_what_was_given_back_does_not_come_again() -> None:
    settled = _admitted(1, cpu=1, fast=1, slow=0)
    after = settlement.settle(settled, [_UNKNOWN], gates=DEFAULT)
    assert after is settled
    overdrawn = settlement.settle(settled, [_use(slow=2)], gates=DEFAULT)
    assert overdrawn == Overdrawn("main", "slow", 2, 0)
    assert overdrawn.message == (
        "Devices of pod set main were allocated that count for 2 of slow, and 0 is reserved for them"
    )


def test_devices_that_nobody_thought_of_are_overdrawn() -> None:
    assert settlement.settle(_admitted(1, cpu=1, fast=1, slow=2), [_use(new=1)], gates=DEFAULT) == Overdrawn(
        "main", "new", 1, 0
    )


def test_pods_that_are_over_give_back_what_they_had() -> None:
    wl = _admitted(3, reclaimable=1, cpu=3, fast=1, slow=4)
    usage = requests.usage(requests.total(wl))
    assert {key.resource: amount for key, amount in usage.items()} == {"cpu": 2000, "fast": 1, "slow": 4}
    after = settlement.settle(wl, [_use(slow=2), _use(slow=1)], gates=DEFAULT)
    assert isinstance(after, workload.Workload)
    usage = requests.usage(requests.total(after))
    assert {key.resource: amount for key, amount in usage.items()} == {"cpu": 2000, "fast": 0, "slow": 3}


def test_settling_more_than_the_account_says_is_refused() -> None:
    before = _admitted(2, cpu=2, fast=2, slow=4)
    for usage in ({"cpu": 1, "fast": 2, "slow": 4}, {"cpu": 2, "fast": 3, "slow": 4}):
        after = _admitted(2, **usage)
        assert any("field is immutable" in str(each) for each in workloadrules.check(after, before))


def test_pods_that_are_over_or_go_are_nobodys() -> None:
    ended = pod.Pod(status=pod.PodStatus(phase="Failed"))
    deleted = pod.Pod(metadata=meta.ObjectMeta(deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC)))
    assert settlement.use(ended, _NoClaims(), {}, measure=Measure()) is None
    assert settlement.use(deleted, _NoClaims(), {}, measure=Measure()) is None


class _NoClaims:
    def get(self, namespace: str, name: str) -> None:
        return None


def _usage(wl: workload.Workload) -> dict[str, str]:
    assert wl.status.admission is not None
    (assignment,) = wl.status.admission.pod_set_assignments
    return {name: str(amount) for name, amount in assignment.resource_usage.items()}
