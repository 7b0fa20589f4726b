"""Configurations from documents: what cannot be read is refused, with the place and the reason."""

from typing import Any

import pytest

from drachma.queueing.configuration import configurationform

_KUEUES_OWN: dict[str, Any] = {
    "health": {"healthProbeBindAddress": ":8081"},
    "metrics": {"bindAddress": ":8443", "localQueueMetrics": {"enable": True, "localQueueSelector": {}}},
    "webhook": {"port": 9443},
    "leaderElection": {"leaderElect": True, "resourceName": "c1f6bfd2.kueue.x-k8s.io", "leaseDuration": "15s"},
    "controller": {"groupKindConcurrency": {"Job.batch": 5}},
    "clientConnection": {"qps": 300, "burst": 500},
    "pprofBindAddress": ":8083",
    "waitForPodsReady": None,
}


def _document(version: str, content: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": f"config.kueue.x-k8s.io/{version}", "kind": "Configuration", **content}


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_all_of_a_manager_is_read(version: str) -> None:
    assert configurationform.read(_document(version, _KUEUES_OWN)).namespace == "kueue-system"


@pytest.mark.parametrize(
    ("version", "content", "want"),
    [
        pytest.param(
            "v1beta2",
            {"namespaces": "a", "invalidField": 1},
            'strict decoding error: unknown field "invalidField", unknown field "namespaces"',
            id="misspelt",
        ),
        pytest.param(
            "v1beta2",
            {"resources": {"deviceClassMappings": [{"name": "gpus", "deviceClassNames": ["gpu.com"], "source": []}]}},
            'strict decoding error: unknown field "resources.deviceClassMappings[0].source"',
            id="misspelt-in-a-list",
        ),
        pytest.param(
            "v1beta2",
            {"waitForPodsReady": {"enable": True}},
            'strict decoding error: unknown field "waitForPodsReady.enable"',
            id="of-the-older-version",
        ),
        pytest.param(
            "v1beta1",
            {"resources": {"deviceClassMappings": [{"name": "gpus", "deviceClassNames": ["gpu.com"], "sources": []}]}},
            'strict decoding error: unknown field "resources.deviceClassMappings[0].sources"',
            id="of-the-newer-version",
        ),
        pytest.param(
            "v1beta2",
            {"resources": [1], "waitForPodsReady": {"timeout": 5}},
            "resources: expected an object, found a list; waitForPodsReady.timeout: expected a string, found number 5",
            id="other-types",
        ),
        pytest.param(
            "v1beta1",
            {"waitForPodsReady": {"enable": True, "timeout": "five minutes"}},
            "waitForPodsReady.timeout: duration 'five minutes': expected a number with a unit, such as 5m or 1.5s",
            id="no-duration",
        ),
        pytest.param(
            "v1beta2",
            {"objectRetentionPolicies": {"workloads": {"afterFinished": "99999999999h"}}},
            "objectRetentionPolicies.workloads.afterFinished: duration '99999999999h': expected a number with a unit, "
            "such as 5m or 1.5s",
            id="duration-beyond-all-clocks",
        ),
    ],
)
def test_what_cannot_be_read_is_refused(version: str, content: dict[str, Any], want: str) -> None:
    with pytest.raises(configurationform.RefusedConfigurationError) as caught:
        configurationform.read(_document(version, content))
    assert str(caught.value) == want


@pytest.mark.parametrize(
    ("content", "want_waits"),
    [
        pytest.param({}, None, id="nothing-said"),
        pytest.param({"waitForPodsReady": {"timeout": "1m"}}, None, id="not-switched-on"),
        pytest.param({"waitForPodsReady": {"enable": True}}, ("5m0s", True), id="switched-on"),
        pytest.param(
            {"waitForPodsReady": {"enable": True, "timeout": "1m", "blockAdmission": False}}, ("1m", False), id="said"
        ),
    ],
)
def test_the_older_version_waits_for_pods_if_it_says_so(
    content: dict[str, Any], want_waits: tuple[str, bool] | None
) -> None:
    waits = configurationform.read(_document("v1beta1", content)).wait_for_pods_ready
    assert (waits and (waits.timeout, waits.block_admission)) == want_waits


def test_the_older_version_shares_fairly_if_it_says_so() -> None:
    assert configurationform.read(_document("v1beta1", {"fairSharing": {"enable": False}})).fair_sharing is None
    sharing = configurationform.read(_document("v1beta1", {"fairSharing": {"enable": True}})).fair_sharing
    assert sharing is not None
    assert sharing.preemption_strategies == ("LessThanOrEqualToFinalShare", "LessThanInitialShare")


@pytest.mark.parametrize(
    ("version", "nulls"),
    [
        pytest.param("v1beta2", {"resources": None}, id="part"),
        pytest.param("v1beta2", {"resources": {"deviceClassMappings": None}}, id="list"),
        pytest.param("v1beta2", {"namespace": None}, id="text"),
        pytest.param("v1beta2", {"featureGates": None}, id="map"),
        pytest.param("v1beta2", {"integrations": {"frameworks": None}}, id="list-with-default"),
        pytest.param("v1beta1", {"waitForPodsReady": None}, id="switched-part"),
    ],
)
def test_null_means_nothing(version: str, nulls: dict[str, Any]) -> None:
    parts: dict[str, Any] = {name: {} for name, part in nulls.items() if part}

    assert configurationform.read(_document(version, nulls)) == configurationform.read(_document(version, parts))


def test_null_leaves_the_older_versions_default_of_blocking_admission() -> None:
    ready = configurationform.read(
        _document("v1beta1", {"waitForPodsReady": {"enable": True, "blockAdmission": None}})
    ).wait_for_pods_ready

    assert ready is not None
    assert ready.block_admission
