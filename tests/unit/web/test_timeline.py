"""The timeline of a pod."""

from typing import Any

from drachma.api import codec, event, pod, resourceclaim
from drachma.web import timeline


def pod_of(*conditions: tuple[str, str], phase: str = "Pending", node: str = "") -> Any:
    listed = [
        {"type": kind, "status": "True", "lastTransitionTime": f"2026-11-18T11:{minute}:00Z"}
        for kind, minute in conditions
    ]
    return codec.decode(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "n", "uid": "u", "creationTimestamp": "2026-11-18T11:00:00Z"},
            "spec": {"nodeName": node, "resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]},
            "status": {"phase": phase, "conditions": listed},
        }
    )


def claim_of(*, allocated: bool) -> resourceclaim.ResourceClaim:
    result = {"request": "r", "driver": "d", "pool": "p", "device": "x"}
    status: dict[str, Any] = {"allocation": {"devices": {"results": [result]}}} if allocated else {}
    metadata = {"name": "c", "namespace": "n", "creationTimestamp": "2026-11-18T11:01:00Z"}
    made = codec.decode(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": metadata,
            "spec": {},
            "status": status,
        }
    )
    assert isinstance(made, resourceclaim.ResourceClaim)
    return made


def describe(subject: pod.Pod, *claims: resourceclaim.ResourceClaim) -> list[str]:
    steps = timeline.steps(subject, claims, None)
    return [f"{each.title}{'!' if each.is_current else ''}" for each in steps if each.time or each.is_current]


def test_a_pod_waits_for_its_claims_then_for_devices_then_runs() -> None:
    assert describe(pod_of()) == ["Created", "Claims created!"]
    assert describe(pod_of(), claim_of(allocated=False)) == ["Created", "Claims created", "Devices allocated!"]
    scheduled = pod_of(("PodScheduled", "02"), node="node-a")
    assert describe(scheduled, claim_of(allocated=True))[-2:] == ["Scheduled", "Prepared!"]
    running = pod_of(("PodScheduled", "02"), ("ContainersReady", "03"), node="node-a", phase="Running")
    assert describe(running, claim_of(allocated=True))[-1] == "Running"


def test_events_come_newest_first() -> None:
    def made(name: str, minute: str) -> event.Event:
        document = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": "n"},
            "reason": name,
            "type": "Warning",
            "lastTimestamp": f"2026-11-18T11:{minute}:00Z",
        }
        decoded = codec.decode(document)
        assert isinstance(decoded, event.Event)
        return decoded

    listed = timeline.reports([made("old", "01"), made("new", "05")])
    assert [each.reason for each in listed] == ["new", "old"]
    assert listed[0].is_warning
