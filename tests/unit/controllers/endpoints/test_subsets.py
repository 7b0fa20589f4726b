"""Which subsets the Endpoints of services are to have."""

from typing import Any

import pytest

from drachma.api import codec, pod, service
from drachma.controllers.endpoints import subsets

HTTP = {"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}
NAMED = {"name": "web", "port": 81, "targetPort": "web", "protocol": "TCP"}


def _service(*ports: dict[str, Any], **spec: Any) -> service.Service:
    document = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "default", "uid": "s"},
        "spec": {"clusterIP": "10.96.0.1", "selector": {"app": "web"}, "ports": list(ports), **spec},
    }
    decoded = codec.decode(document)
    assert isinstance(decoded, service.Service)
    return decoded


def _pod(name: str, *addresses: str, ready: str = "True", phase: str = "Running", **more: Any) -> pod.Pod:
    container = {"name": "c", "image": "i", "ports": [{"name": more.pop("port", "web"), "containerPort": 9000}]}
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


def _shown(of: service.Service, *pods: pod.Pod) -> list[tuple[list[str], list[str], list[int]]]:
    """Of each subset the pods that are ready, those that are not, and the ports."""
    return [
        (
            [each["targetRef"]["name"] for each in subset.get("addresses", ())],
            [each["targetRef"]["name"] for each in subset.get("notReadyAddresses", ())],
            [each["port"] for each in subset.get("ports", ())],
        )
        for subset in subsets.service_subsets(of, pods)
    ]


def test_an_address_tells_whose_it_is() -> None:
    at = _pod("a", "10.0.0.1", hostname="h", subdomain="web")
    reference = {"kind": "Pod", "namespace": "default", "name": "a", "uid": "a"}
    assert subsets.service_subsets(_service(HTTP), [at]) == [
        {
            "addresses": [{"ip": "10.0.0.1", "hostname": "h", "nodeName": "n", "targetRef": reference}],
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        }
    ]


GOING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("of", "pods", "want"),
    [
        pytest.param(_service(HTTP), [], [], id="no-pods"),
        pytest.param(
            _service(HTTP),
            [_pod("b", "10.0.0.2"), _pod("a", "10.0.0.1"), _pod("c", "10.0.0.3", ready="False")],
            [(["a", "b"], ["c"], [8080])],
            id="sorted-and-apart-by-readiness",
        ),
        pytest.param(
            _service(HTTP, NAMED),
            [_pod("a", "10.0.0.1"), _pod("b", "10.0.0.2", port="other")],
            [(["a", "b"], [], [8080]), (["a"], [], [9000])],
            id="a-port-that-not-all-have",
        ),
        pytest.param(_service(HTTP, NAMED), [_pod("a", "10.0.0.1")], [(["a"], [], [8080, 9000])], id="ports-together"),
        pytest.param(
            _service(HTTP),
            [_pod("a", "10.0.0.1", phase="Failed"), _pod("b"), _pod("c", "10.0.0.3", metadata=GOING)],
            [],
            id="ended-without-address-and-going",
        ),
        pytest.param(
            _service(HTTP, publishNotReadyAddresses=True),
            [_pod("a", "10.0.0.1", ready="False"), _pod("b", "10.0.0.2", metadata=GOING)],
            [(["a", "b"], [], [8080])],
            id="also-those-that-are-not-ready",
        ),
        pytest.param(_service(clusterIP="None"), [_pod("a", "10.0.0.1")], [(["a"], [], [])], id="headless"),
        pytest.param(_service(), [_pod("a", "10.0.0.1")], [], id="without-ports"),
        pytest.param(
            _service(HTTP, ipFamilies=["IPv6"]),
            [_pod("a", "10.0.0.1", "fd00::1"), _pod("b", "10.0.0.2")],
            [(["a"], [], [8080])],
            id="of-one-family",
        ),
    ],
)
def test_subsets(of: service.Service, pods: list[pod.Pod], want: list[Any]) -> None:
    assert _shown(of, *pods) == want


@pytest.mark.parametrize(
    ("ready", "unready", "want"),
    [
        pytest.param((600, 400), (0, 0), None, id="just-enough"),
        pytest.param((600, 200), (100, 300), [(600, 50), (200, 150)], id="not-ready-ones-go-first"),
        pytest.param((1500, 500), (10, 0), [(750, 0), (250, 0)], id="by-their-share"),
    ],
)
def test_too_many_addresses(
    ready: tuple[int, int], unready: tuple[int, int], want: list[tuple[int, int]] | None
) -> None:
    content: list[dict[str, Any]] = [
        {"addresses": list(range(some)), "notReadyAddresses": list(range(others))}
        for some, others in zip(ready, unready, strict=True)
    ]
    assert subsets.truncate(content) is (want is not None)
    if want is not None:
        assert [(len(each["addresses"]), len(each.get("notReadyAddresses", ()))) for each in content] == want
