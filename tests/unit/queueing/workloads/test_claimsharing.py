"""Claims by name are paid for once in a queue, and by whom follows from accounts."""

from drachma.queueing.devices import account as deviceaccount
from drachma.queueing.devices.requests import DeviceRequests, SharedCharge
from drachma.queueing.kinds import decoding, workload
from drachma.queueing.workloads import claimsharing
from drachma.queueing.workloads.requests import PodSetRequests
from drachma.values import quantity

_CHARGE = {"gpus": quantity.Quantity.from_int(2)}


def _devices(uid: str = "claim") -> DeviceRequests:
    return DeviceRequests(shared={"shared": SharedCharge(uid, _CHARGE, ("main",))})


def _holder(name: str, *others: workload.Workload, second: int = 0, namespace: str = "default") -> workload.Workload:
    """Return an admitted workload that shares the claim with others of its queue."""
    devices = _devices()
    paid = claimsharing.paid_shares(devices, namespace, others)
    gpus = {} if paid else {"gpus": "2"}
    assignment = {
        "name": "main",
        "count": 1,
        "flavors": {"cpu": "default", **dict.fromkeys(gpus, "fast")},
        "resourceUsage": {"cpu": "1", **gpus},
    }
    reserved = {"type": "QuotaReserved", "status": "True", "lastTransitionTime": f"2026-01-01T00:00:{second:02}Z"}
    document = {
        "metadata": {"name": name, "namespace": namespace, "uid": name},
        "spec": {"podSets": [{"name": "main", "count": 1}]},
        "status": {
            "admission": {"clusterQueue": "team", "podSetAssignments": [assignment]},
            "conditions": [reserved],
        },
    }
    admitted = decoding.decode(document, workload.Workload)
    return deviceaccount.with_account(admitted, claimsharing.unpaid_requests(devices, paid), paid=paid)


_INHERITED = (PodSetRequests("claim shared", {"gpus": 2}, 1, {"gpus": "fast"}),)


def test_who_comes_first_pays_and_others_do_not() -> None:
    first = _holder("first")
    assert claimsharing.shares(first)["shared"].is_paid
    assert claimsharing.paid_shares(_devices(), "default", [first]).keys() == {"shared"}
    unpaid = claimsharing.unpaid_requests(_devices(), claimsharing.paid_shares(_devices(), "default", [first]))
    assert unpaid is not None
    assert not unpaid.shared
    second = _holder("second", first, second=1)
    assert not claimsharing.shares(second)["shared"].is_paid
    assert claimsharing.inherited_charges(second, [first, second]) == ()


def test_who_was_admitted_next_inherits() -> None:
    first = _holder("first")
    second, third = _holder("z", first, second=1), _holder("a", first, second=2)
    assert claimsharing.inherited_charges(second, [second, third]) == _INHERITED
    assert claimsharing.inherited_charges(third, [second, third]) == ()
    assert claimsharing.inherited_charges(third, [third]) == _INHERITED


def test_of_one_second_the_uid_decides() -> None:
    first = _holder("first")
    one, other = _holder("a", first, second=1), _holder("b", first, second=1)
    assert claimsharing.inherited_charges(one, [one, other]) == _INHERITED
    assert claimsharing.inherited_charges(other, [one, other]) == ()


def test_claims_of_other_namespaces_and_other_claims_of_the_name_are_not_shared() -> None:
    first = _holder("first")
    assert claimsharing.paid_shares(_devices(), "elsewhere", [first]) == {}
    assert claimsharing.paid_shares(_devices("made-anew"), "default", [first]) == {}


def test_what_is_charged_once_does_not_shrink_with_the_pods() -> None:
    whole = PodSetRequests("main", {"cpu": 4000, "gpus": 6}, 4, once={"gpus": 2})
    assert whole.scaled(1).requests == {"cpu": 1000, "gpus": 3}
