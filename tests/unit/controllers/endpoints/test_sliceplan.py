"""Which endpoint slices services are to have."""

from typing import Any

import msgspec
import pytest

from drachma.api import codec, pod, service
from drachma.controllers.endpoints import sliceplan
from drachma.controllers.endpoints.sliceplan import EndpointSlice


def _service(*, labels: dict[str, str] | None = None, ports: tuple[Any, ...] = (), **spec: Any) -> service.Service:
    document = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "default", "uid": "s", "labels": labels or {}},
        "spec": {
            "clusterIP": "10.96.0.1",
            "selector": {"app": "web"},
            "ports": list(ports) or [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}],
            **spec,
        },
    }
    decoded = codec.decode(document)
    assert isinstance(decoded, service.Service)
    return decoded


def _pod(name: str, *addresses: str, phase: str = "Running", ready: str = "True", **more: Any) -> pod.Pod:
    container = {"name": "c", "image": "i", "ports": [{"name": "web", "containerPort": 9000, "protocol": "TCP"}]}
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": name, **more.pop("metadata", {})},
        "spec": {"nodeName": "n", "containers": [container], **more},
        "status": {
            "phase": phase,
            "podIP": addresses[0] if addresses else "",
            "podIPs": [{"ip": each} for each in addresses],
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }
    decoded = codec.decode(document)
    assert isinstance(decoded, pod.Pod)
    return decoded


def _written(document: dict[str, Any], name: str) -> EndpointSlice:
    """A slice that was made, as it is read back."""
    content = {**document, "metadata": {**document["metadata"], "name": name}}
    return msgspec.convert({key: content[key] for key in content if key not in ("apiVersion", "kind")}, EndpointSlice)


def _plan(of: service.Service, *pods: pod.Pod, slices: tuple[EndpointSlice, ...] = ()) -> sliceplan.Plan:
    return sliceplan.plan(of, pods, slices, zones={"n": "z"})


def test_an_endpoint_tells_how_its_pod_is() -> None:
    (slice_document,) = _plan(
        _service(labels={"tier": "front"}), _pod("a", "10.0.0.1", hostname="h", subdomain="web")
    ).made
    assert slice_document["metadata"]["labels"] == {
        "tier": "front",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    assert slice_document["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
    assert slice_document["endpoints"] == [
        {
            "addresses": ["10.0.0.1"],
            "conditions": {"ready": True, "serving": True, "terminating": False},
            "targetRef": {"kind": "Pod", "namespace": "default", "name": "a", "uid": "a"},
            "nodeName": "n",
            "zone": "z",
            "hostname": "h",
        }
    ]


@pytest.mark.parametrize(
    ("spec", "of", "want"),
    [
        pytest.param({}, {"ready": "False"}, (False, False, False), id="not-ready"),
        pytest.param({"publishNotReadyAddresses": True}, {"ready": "False"}, (True, False, False), id="said-anyway"),
        pytest.param(
            {}, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, (False, True, True), id="about-to-go"
        ),
    ],
)
def test_conditions(spec: dict[str, Any], of: dict[str, Any], want: tuple[bool, ...]) -> None:
    (slice_document,) = _plan(_service(**spec), _pod("a", "10.0.0.1", **of)).made
    assert tuple(slice_document["endpoints"][0]["conditions"].values()) == want


@pytest.mark.parametrize(
    "left_out",
    [
        pytest.param(_pod("a"), id="no-address"),
        pytest.param(_pod("a", "10.0.0.1", phase="Succeeded"), id="ended"),
        pytest.param(_pod("a", "127.0.0.1"), id="nobody-else-reaches-it"),
        pytest.param(_pod("a", "fd00::1"), id="another-family"),
    ],
)
def test_who_is_no_endpoint(left_out: pod.Pod) -> None:
    (slice_document,) = _plan(_service(clusterIP="None"), left_out).made
    assert (slice_document["endpoints"], slice_document["ports"]) == ([], [])
    assert slice_document["metadata"]["labels"]["service.kubernetes.io/headless"] == ""


def test_named_ports_are_those_of_the_pod() -> None:
    (slice_document,) = _plan(_service(ports=({"port": 80, "targetPort": "web"},)), _pod("a", "10.0.0.1")).made
    assert slice_document["ports"] == [{"name": "", "port": 9000, "protocol": "TCP"}]
    assert msgspec.json.decode(msgspec.json.encode(slice_document)) == slice_document


def test_there_are_no_more_than_a_hundred_in_a_slice_and_they_stay_where_they_are() -> None:
    pods = [_pod(f"p{number:03}", f"10.0.{number // 250}.{number % 250 + 1}") for number in range(150)]
    slice_document = _plan(_service(), *pods).made
    assert [len(each["endpoints"]) for each in slice_document] == [100, 50]
    slices = tuple(_written(document, f"web-{number}") for number, document in enumerate(slice_document))
    assert _plan(_service(), *pods, slices=slices) == sliceplan.Plan([], [], [])
    fewer = _plan(_service(), *pods[:99], *pods[100:], slices=slices)
    assert [(known.metadata.name, len(content["endpoints"])) for known, content in fewer.changed] == [("web-0", 99)]
    assert not fewer.made
    more = _plan(_service(), *pods[:99], *pods[100:], _pod("z", "10.9.0.1"), slices=slices)
    assert [len(content["endpoints"]) for _, content in more.changed] == [100]


def test_a_service_without_pods_has_one_empty_slice() -> None:
    first = tuple(_written(each, "web-0") for each in _plan(_service(), _pod("a", "10.0.0.1")).made)
    emptied = _plan(_service(), slices=first)
    assert [each.metadata.name for each in emptied.deleted] == ["web-0"]
    (placeholder,) = emptied.made
    assert placeholder["endpoints"] == []
    assert _plan(_service(), slices=(_written(placeholder, "web-1"),)) == sliceplan.Plan([], [], [])
