"""KubeSchedulerConfiguration: profiles, plugins, arguments and leases, and refusals that name field and value."""

import pathlib
import random
from typing import Any

import pytest

from drachma import errors
from drachma.process import schedulerconfiguration
from drachma.runtime import clock, lease
from drachma.scheduler import Settings, profiles

_HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def _convert(**fields: Any) -> schedulerconfiguration.SchedulerConfiguration:
    return schedulerconfiguration.convert({**_HEAD, **fields}, Settings())


def _plugins(**points: Any) -> dict[str, int]:
    """Names of the plugins that are on, with their weights; 0 for those that do not score."""
    settings = _convert(profiles=[{"plugins": points}]).settings
    profile = profiles.default(settings, clock=clock.SystemClock(), rng=random.Random())
    return {each.plugin.name: each.weight if each.is_scoring else 0 for each in profile.entries}


DEFAULT = _plugins()


def test_an_empty_configuration_is_the_default() -> None:
    made = _convert()
    assert made.settings.name == "default-scheduler"
    assert (made.lease_name, made.timing) == (lease.LeaseName("kube-system", "kube-scheduler"), lease.Timing())
    profile = profiles.default(Settings(), clock=clock.SystemClock(), rng=random.Random())
    assert {each.plugin.name: each.weight if each.is_scoring else 0 for each in profile.entries} == DEFAULT


def test_profile_backoff_and_lease() -> None:
    made = _convert(
        podInitialBackoffSeconds=2,
        podMaxBackoffSeconds=20,
        parallelism=4,
        clientConnection={"kubeconfig": "/etc/scheduler.conf", "qps": 50},
        leaderElection={"leaseDuration": "1m", "resourceName": "mine", "resourceNamespace": "team"},
        profiles=[{"schedulerName": "gpus"}],
    )
    assert made.settings.name == "gpus"
    assert (made.settings.pauses.initial, made.settings.pauses.maximum) == (2, 20)
    assert (made.lease_name, made.timing.valid) == (lease.LeaseName("team", "mine"), 60)
    assert made.kubeconfig == pathlib.Path("/etc/scheduler.conf")
    assert _convert(leaderElection={"leaderElect": False}).lease_name is None


def test_arguments_of_plugins() -> None:
    arguments = [
        {"name": "DynamicResources", "args": {"filterTimeout": "5s", "bindingTimeout": "2m"}},
        {"name": "VolumeBinding", "args": {"kind": "VolumeBindingArgs", "bindTimeoutSeconds": 30}},
        {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}},
        {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 1}},
    ]
    settings = _convert(profiles=[{"pluginConfig": arguments}]).settings
    assert (settings.filter_seconds, settings.binding_seconds, settings.volume_binding_seconds) == (5, 120, 30)
    assert settings.plugins.strategy == "MostAllocated"


def test_plugins_are_disabled_weighted_and_ordered() -> None:
    assert _plugins(multiPoint={"disabled": [{"name": "ImageLocality"}]}) == {
        name: weight for name, weight in DEFAULT.items() if name != "ImageLocality"
    }
    weighted = _plugins(multiPoint={"enabled": [{"name": "NodeResourcesFit", "weight": 7}]})
    assert weighted == {**DEFAULT, "NodeResourcesFit": 7}
    assert list(weighted) == list(DEFAULT)
    assert _plugins(score={"enabled": [{"name": "TaintToleration", "weight": 9}]})["TaintToleration"] == 9
    assert _plugins(score={"disabled": [{"name": "TaintToleration"}]}) == {**DEFAULT, "TaintToleration": 0}
    only = _plugins(
        multiPoint={"disabled": [{"name": "*"}], "enabled": [{"name": "NodeName"}, {"name": "NodeAffinity"}]},
        queueSort={"enabled": [{"name": "PrioritySort"}]},
        bind={"enabled": [{"name": "DefaultBinder"}]},
    )
    assert list(only.items()) == [("NodeName", 0), ("NodeAffinity", 1)]


def test_a_plugin_with_one_extension_point_is_disabled_there() -> None:
    assert "DefaultPreemption" not in _plugins(postFilter={"disabled": [{"name": "DefaultPreemption"}]})
    scores = {"enabled": [{"name": "ImageLocality", "weight": 4}], "disabled": [{"name": "*"}]}
    kept = _plugins(score=scores)
    assert {name for name, weight in kept.items() if weight} == {"ImageLocality"}
    assert "NodeResourcesBalancedAllocation" not in kept


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        pytest.param({"kind": "Other"}, "expected a KubeSchedulerConfiguration of kubescheduler", id="kind"),
        pytest.param({"apiVersion": "kubescheduler.config.k8s.io/v1beta3"}, "expected a KubeSch", id="version"),
        pytest.param({"unknown": 1}, "unknown field `unknown`", id="unknown-field"),
        pytest.param({"parallelism": 0}, "parallelism: 0: expected a number above 0", id="parallelism"),
        pytest.param(
            {"profiles": [{"schedulerName": "a"}, {"schedulerName": "b"}]},
            r"profiles: \['a', 'b'\]: only one profile is supported",
            id="two-profiles",
        ),
        pytest.param({"percentageOfNodesToScore": 50}, "percentageOfNodesToScore: 50: not supported", id="percentage"),
        pytest.param({"podMaxBackoffSeconds": 0.5}, "podMaxBackoffSeconds: 0.5: expected at least", id="backoff"),
        pytest.param(
            {"extenders": [{"urlPrefix": "http://x"}]}, r"extenders: \['http://x'\]: extenders are not", id="extender"
        ),
        pytest.param({"delayCacheUntilActive": True}, "delayCacheUntilActive: 'true': not supported", id="delay"),
        pytest.param(
            {"leaderElection": {"resourceLock": "endpoints"}}, "leaderElection.resourceLock: 'endpoints'", id="lock"
        ),
        pytest.param(
            {"leaderElection": {"renewDeadline": "20s"}},
            "leaderElection.renewDeadline: '20s': expected less than leaseDuration",
            id="renew-deadline",
        ),
        pytest.param(
            {"leaderElection": {"retryPeriod": "soon"}}, "retryPeriod: 'soon': expected a duration", id="duration"
        ),
    ],
)
def test_refusals(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(errors.InvalidValueError, match=problem):
        _convert(**fields)


@pytest.mark.parametrize(
    ("profile", "problem"),
    [
        pytest.param(
            {"plugins": {"score": {"enabled": [{"name": "Mine"}]}}},
            r"profiles\[0\]\.plugins\.score\.enabled\[0\]\.name: 'Mine': there is no such plugin",
            id="unknown-plugin",
        ),
        pytest.param(
            {"plugins": {"bind": {"disabled": [{"name": "DefaultBinder"}]}}},
            r"plugins\.bind\.disabled\[0\]\.name: 'DefaultBinder': not supported",
            id="binder",
        ),
        pytest.param(
            {"plugins": {"filter": {"disabled": [{"name": "NodeAffinity"}]}}},
            r"profiles\[0\]\.plugins: NodeAffinity at PreFilter, Score only: not supported",
            id="one-of-several-points",
        ),
        pytest.param(
            {"plugins": {"score": {"enabled": [{"name": "NodeAffinity", "weight": -1}]}}},
            r"score\.enabled\[0\]\.weight: -1: expected 0 to",
            id="weight",
        ),
        pytest.param(
            {"pluginConfig": [{"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 5}}]},
            r"pluginConfig\[0\]\.args\.hardPodAffinityWeight: 5: not supported; expected 1",
            id="argument-value",
        ),
        pytest.param(
            {"pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "Ratio"}}}]},
            r"scoringStrategy\.type: 'Ratio': not supported; expected one of LeastAllocated, MostAllocated",
            id="strategy",
        ),
        pytest.param(
            {"pluginConfig": [{"name": "DynamicResources", "args": {"filterTimeout": "-1s"}}]},
            r"args\.filterTimeout: '-1s': expected a duration above 0",
            id="timeout",
        ),
        pytest.param(
            {"pluginConfig": [{"name": "Mine", "args": {"a": 1}}]}, r"args\.a: 1: Mine has no such", id="argument"
        ),
    ],
)
def test_refusals_in_profiles(profile: dict[str, Any], problem: str) -> None:
    with pytest.raises(errors.InvalidValueError, match=problem):
        _convert(profiles=[profile])


def test_a_refusal_names_the_file(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "scheduler.yaml"
    for text, problem in (("a: [", "not YAML"), ("- 1", "expected a Kube")):
        path.write_text(text)
        with pytest.raises(errors.InvalidValueError, match=f"^configuration {path}: {problem}"):
            schedulerconfiguration.read(path, Settings())
    with pytest.raises(errors.InvalidValueError, match="missing: No such file"):
        schedulerconfiguration.read(tmp_path / "missing", Settings())
