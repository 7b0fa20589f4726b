"""The active configuration, from one or two documents; a refused one leaves the previous one active."""

from typing import Any

import pytest

from drachma.queueing.component import ActiveConfiguration, configurationmap
from drachma.queueing.configuration.configurationform import RefusedConfigurationError
from drachma.queueing.configuration.queueingpolicy import AS_KUEUE, QueueingPolicy, Sidecars
from drachma.queueing.workloads.pastusage import UsageRates

_KUEUE = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
_POLICY = {"apiVersion": "config.drachma.dev/v1", "kind": "QueueingPolicy", "sidecars": "Charged"}
_SHARING: dict[str, Any] = {
    **_KUEUE,
    "admissionFairSharing": {"usageHalfLifeTime": "1h", "resourceWeights": {"cpu": 2}},
}


def test_a_policy_stands_beside_kueues_configuration() -> None:
    active = ActiveConfiguration()
    assert active.policy == AS_KUEUE
    assert active.offer(_KUEUE, _POLICY)
    assert active.policy == QueueingPolicy(sidecars=Sidecars.CHARGED)
    assert active.settings.policy == active.policy
    assert not active.offer(_POLICY, _KUEUE)
    assert active.offer(_KUEUE)
    assert active.policy == AS_KUEUE


@pytest.mark.parametrize(
    ("documents", "want"),
    [
        pytest.param([_POLICY], "at most one QueueingPolicy: got 0 and 1", id="policy-alone"),
        pytest.param([_KUEUE, _POLICY, _POLICY], "got 1 and 2", id="two-policies"),
        pytest.param(
            [_KUEUE, {**_POLICY, "sidecars": "Free"}],
            'QueueingPolicy.sidecars: Unsupported value: "Free": supported values: "Charged", "Ordinary"',
            id="wrong-value",
        ),
        pytest.param([{**_KUEUE, "kind": "Other"}, _POLICY], "expected Configuration of", id="no-configuration"),
        pytest.param(
            [{**_KUEUE, "admissionFairSharing": {"usageHalfLifeTime": "an hour"}}],
            "duration 'an hour': expected a number with a unit",
            id="no-half-life",
        ),
    ],
)
def test_what_is_wrong_with_either_refuses_both(documents: list[dict[str, Any]], want: str) -> None:
    active = ActiveConfiguration()
    active.offer(_KUEUE, _POLICY)
    with pytest.raises(RefusedConfigurationError) as caught:
        active.offer(*documents)
    assert want in str(caught.value)
    assert active.policy == QueueingPolicy(sidecars=Sidecars.CHARGED)


def test_past_usage_counts_if_the_configuration_says_how_and_its_gate_is_on() -> None:
    active = ActiveConfiguration()
    assert active.settings.usage_rates is None
    assert active.offer(_SHARING)
    assert active.settings.usage_rates == UsageRates(3600, 300, {"cpu": 2})
    without_interval = {**_SHARING, "admissionFairSharing": {"usageHalfLifeTime": "1h"}}
    assert active.offer({**without_interval, "featureGates": {"AdmissionFairSharing": False}})
    assert active.settings.usage_rates is None


@pytest.mark.parametrize(
    ("parts", "want"),
    [
        pytest.param({}, ["red", "blue"], id="all-unless-something-is-said"),
        pytest.param({"metrics": {"localQueueMetrics": {"enable": True}}}, ["red", "blue"], id="switched-on"),
        pytest.param({"metrics": {"localQueueMetrics": {}}}, [], id="not-switched-on"),
        pytest.param({"featureGates": {"LocalQueueMetrics": False}}, [], id="without-the-gate"),
        pytest.param(
            {"metrics": {"localQueueMetrics": {"enable": True, "localQueueSelector": {"matchLabels": {"is": "red"}}}}},
            ["red"],
            id="some",
        ),
    ],
)
def test_which_local_queues_are_measured(parts: dict[str, Any], want: list[str]) -> None:
    active = ActiveConfiguration()
    active.offer({**_KUEUE, **parts})
    assert [each for each in ("red", "blue") if active.measures_local_queue({"is": each})] == want


def test_a_file_has_both_documents() -> None:
    text = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n---\nkind: QueueingPolicy\n"
    assert [each["kind"] for each in configurationmap.parse(text)] == ["Configuration", "QueueingPolicy"]
    with pytest.raises(RefusedConfigurationError, match="expected an object with apiVersion and kind, got 'text'"):
        configurationmap.parse("text")


def test_classes_with_long_names_are_mapped_if_the_policy_says_so() -> None:
    long_name = ".".join(["a" * 60, "b" * 60, "example.com"])
    mapping = {"name": "gpus", "deviceClassNames": [long_name]}
    document = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "resources": {"deviceClassMappings": [mapping]},
    }
    configured = ActiveConfiguration()
    with pytest.raises(RefusedConfigurationError, match="63"):
        configured.offer(document)
    policy = {"apiVersion": "config.drachma.dev/v1", "kind": "QueueingPolicy", "classNames": "Subdomains"}
    assert configured.offer(document, policy)
    mapping["deviceClassNames"] = ["x" * 254]
    with pytest.raises(RefusedConfigurationError, match="63"):
        configured.offer(document, policy)


def test_a_quota_for_selected_devices_is_not_also_that_of_a_class() -> None:
    selection = {
        "name": "gpus",
        "deviceClassNames": ["gpu.example.com"],
        "deviceSelector": {"cel": {"expression": "true"}},
    }
    policy = {**_POLICY, "selectedDevices": [selection]}
    mapping = {"name": "gpus", "deviceClassNames": ["gpu.example.com"]}
    document = {**_KUEUE, "resources": {"deviceClassMappings": [mapping]}}
    configured = ActiveConfiguration()
    with pytest.raises(RefusedConfigurationError, match="also a name in selectedDevices of the QueueingPolicy"):
        configured.offer(document, policy)
    assert configured.offer(document, {**policy, "selectedDevices": [{**selection, "name": "others"}]})
