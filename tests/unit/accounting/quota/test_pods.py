"""Charges of pods: compute resources of their containers until they have ended."""

from typing import Any

import pytest

from drachma.accounting.quota import evaluator, pods
from drachma.api import pod
from drachma.api.resourcequota import ScopedResourceSelectorRequirement as Requirement
from tests.unit.accounting.quota import worlds

PODS = pods.Pods()


def a_pod(*containers: dict[str, Any], status: Any = None, metadata: Any = None, **spec: Any) -> pod.Pod:
    listed = [{"name": f"c{number}", **each} for number, each in enumerate(containers)]
    document = {"metadata": metadata or {"name": "p"}, "spec": {"containers": listed, **spec}, "status": status or {}}
    made: pod.Pod = worlds.read(document, pod.Pod)
    return made


def asks(limits: dict[str, str] | None = None, /, **requests: str) -> dict[str, Any]:
    return {"resources": {"requests": requests, "limits": limits or {}}}


def going(grace: int, ago: int) -> dict[str, Any]:
    deletion = f"2026-01-02T03:04:{5 - ago:02}Z"
    return {"name": "p", "deletionTimestamp": deletion, "deletionGracePeriodSeconds": grace}


@pytest.mark.parametrize(
    ("subject", "want"),
    [
        pytest.param(a_pod({}), {"pods": "1"}, id="asks-for-nothing"),
        pytest.param(
            a_pod(asks({"cpu": "1", "memory": "1Gi"}, cpu="500m", memory="512Mi"), asks(cpu="250m")),
            {"cpu": "750m", "memory": "512Mi", "limits.cpu": "1", "limits.memory": "1Gi", "pods": "1"}
            | {"requests.cpu": "750m", "requests.memory": "512Mi"},
            id="containers-add-up",
        ),
        pytest.param(
            a_pod(asks(**{"ephemeral-storage": "1Gi", "hugepages-2Mi": "4Mi", "example.com/gpu": "2"})),
            {"ephemeral-storage": "1Gi", "requests.ephemeral-storage": "1Gi", "pods": "1"}
            | {"hugepages-2Mi": "4Mi", "requests.hugepages-2Mi": "4Mi", "requests.example.com/gpu": "2"},
            id="other-resources",
        ),
        pytest.param(
            a_pod(asks(**{"deviceclass.resource.kubernetes.io/gpu": "2", "kubernetes.io/odd": "1"})),
            {"requests.deviceclass.resource.kubernetes.io/gpu": "2", "pods": "1"},
            id="implicit-extended-resource",
        ),
        pytest.param(
            a_pod(
                asks(cpu="300m"),
                asks(cpu="200m"),
                initContainers=[
                    {"name": "i", **asks(cpu="1500m")},
                    {"name": "s", "restartPolicy": "Always", **asks(cpu="100m")},
                ],
                overhead={"cpu": "10m"},
            ),
            {"cpu": "1510m", "requests.cpu": "1510m", "pods": "1"},
            id="init-containers-and-overhead",
        ),
        pytest.param(
            a_pod(asks({"cpu": "1"}), overhead={"cpu": "10m", "memory": "1Mi"}),
            {"cpu": "10m", "requests.cpu": "10m", "memory": "1Mi", "requests.memory": "1Mi", "limits.cpu": "1010m"}
            | {"pods": "1"},
            id="overhead-counts-for-limits-that-there-are",
        ),
        pytest.param(
            a_pod(asks(cpu="100m"), resources={"requests": {"cpu": "2"}, "limits": {"cpu": "3"}}),
            {"cpu": "2", "requests.cpu": "2", "limits.cpu": "3", "pods": "1"},
            id="pod-level-resources",
        ),
        pytest.param(a_pod(asks(cpu="1"), status={"phase": "Succeeded"}), {}, id="succeeded"),
        pytest.param(a_pod(asks(cpu="1"), status={"phase": "Failed"}), {}, id="failed"),
        pytest.param(a_pod({}, metadata=going(grace=5, ago=4)), {"pods": "1"}, id="still-in-its-grace-period"),
        pytest.param(a_pod({}, metadata=going(grace=1, ago=4)), {}, id="should-be-gone"),
    ],
)
def test_usage(subject: pod.Pod, want: dict[str, str]) -> None:
    assert worlds.used(PODS, subject) == {"count/pods": "1", **want}


@pytest.mark.parametrize(
    ("status", "want_request", "want_limit"),
    [
        pytest.param({}, "1", "2", id="not-running-yet"),
        pytest.param(
            {"containerStatuses": [{"name": "c0", "allocatedResources": {"cpu": "1500m"}}]},
            "1500m",
            "2",
            id="allocated",
        ),
        pytest.param(
            {
                "containerStatuses": [
                    {"name": "c0", "resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "4"}}},
                    {"name": "other", "resources": {"requests": {"cpu": "9"}}},
                ]
            },
            "3",
            "4",
            id="has-more-than-it-asks-for",
        ),
        pytest.param(
            {
                "containerStatuses": [
                    {"name": "c0", "resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": "1"}}}
                ],
                "conditions": [{"type": "PodResizePending", "reason": "Infeasible", "status": "True"}],
            },
            "500m",
            "1",
            id="asks-for-what-cannot-be-had",
        ),
    ],
)
def test_a_pod_that_is_resized(status: dict[str, Any], want_request: str, want_limit: str) -> None:
    usage = worlds.used(PODS, a_pod(asks({"cpu": "2"}, cpu="1"), status=status))
    assert (usage["requests.cpu"], usage["limits.cpu"]) == (want_request, want_limit)


AFFINITY = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"namespaces": ["x"]}]}}
PREFERENCE = {
    "podAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": {"namespaceSelector": {}}}]
    }
}


@pytest.mark.parametrize(
    ("subject", "scope", "values", "want"),
    [
        pytest.param(a_pod({}, activeDeadlineSeconds=0), "Terminating", (), True, id="terminating"),
        pytest.param(a_pod({}), "Terminating", (), False, id="without-a-deadline"),
        pytest.param(a_pod({}), "NotTerminating", (), True, id="not-terminating"),
        pytest.param(a_pod({}), "BestEffort", (), True, id="best-effort"),
        pytest.param(a_pod(asks(cpu="0")), "BestEffort", (), True, id="nothing-of-cpu"),
        pytest.param(a_pod(asks({"memory": "1"})), "NotBestEffort", (), True, id="limited"),
        pytest.param(a_pod({}, resources={"requests": {"cpu": "1"}}), "BestEffort", (), False, id="by-its-budget"),
        pytest.param(a_pod({}, priorityClassName="high"), "PriorityClass", ("high",), True, id="of-the-class"),
        pytest.param(a_pod({}, priorityClassName="low"), "PriorityClass", ("high",), False, id="of-another-class"),
        pytest.param(a_pod({}), "PriorityClass", ("high",), False, id="of-no-class"),
        pytest.param(a_pod({}, affinity=AFFINITY), "CrossNamespacePodAffinity", (), True, id="keeps-apart"),
        pytest.param(a_pod({}, affinity=PREFERENCE), "CrossNamespacePodAffinity", (), True, id="would-like"),
        pytest.param(a_pod({}), "CrossNamespacePodAffinity", (), False, id="without-affinity"),
        pytest.param(a_pod({}), "VolumeAttributesClass", (), False, id="scope-of-others"),
    ],
)
def test_scopes(subject: pod.Pod, scope: str, values: tuple[str, ...], want: bool) -> None:
    operator = "In" if values else "Exists"
    requirement = Requirement(scope_name=scope, operator=operator, values=values)
    assert PODS.is_in_scope(subject, requirement) is want


@pytest.mark.parametrize(
    ("subject", "required", "want"),
    [
        pytest.param(a_pod({}), {"pods", "requests.example.com/gpu", "ephemeral-storage"}, "", id="need-not-be-stated"),
        pytest.param(
            a_pod({}, asks(cpu="1")),
            {"requests.cpu", "limits.cpu"},
            "must specify limits.cpu for: c0,c1; requests.cpu for: c0",
            id="by-each-container",
        ),
        pytest.param(
            a_pod(asks(cpu="1"), initContainers=[{"name": "i"}]),
            {"cpu"},
            "must specify cpu for: i",
            id="init-container",
        ),
        pytest.param(a_pod({}, resources={"limits": {"cpu": "1"}}), {"cpu"}, "", id="stated-for-the-pod"),
    ],
)
def test_what_must_be_stated(subject: pod.Pod, required: set[str], want: str) -> None:
    assert PODS.omission(subject, frozenset(required)) == want


@pytest.mark.parametrize(
    ("change", "want"),
    [
        pytest.param(evaluator.Change(a_pod({})), True, id="create"),
        pytest.param(evaluator.Change(a_pod({}), a_pod({})), False, id="update"),
        pytest.param(evaluator.Change(a_pod({}, activeDeadlineSeconds=5), a_pod({})), True, id="gets-a-deadline"),
        pytest.param(evaluator.Change(a_pod({}), a_pod({}), "resize"), True, id="resize"),
    ],
)
def test_which_writes_are_looked_at(change: evaluator.Change[pod.Pod], want: bool) -> None:
    assert PODS.concerns(change) is want


def test_what_can_be_limited() -> None:
    of_pods = {"pods", "count/pods", "limits.memory", "requests.hugepages-1Gi", "requests.example.com/gpu"}
    of_pods |= {"requests.deviceclass.resource.kubernetes.io/gpu", "hugepages-2Mi", "cpu"}
    others = {"services", "count/secrets", "gpu.deviceclass.resource.k8s.io/devices", "requests.storage"}
    assert PODS.counted(of_pods | others, worlds.NOTHING) == of_pods
