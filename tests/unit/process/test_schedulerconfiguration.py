"""KubeSchedulerConfiguration: profiles, plugins, arguments and leases, and refusals that name field and value."""

import pathlib
import random
from typing import Any

import pytest

from drachma import errors
from drachma.process import schedulerconfiguration
from drachma.runtime import clock, lease
from drachma.scheduler import Settings, profiles
from drachma.scheduler.framework.resourcescoring import ScoredResource, ShapePoint, Strategy, StrategyType
from tests.unit.process import refusedconfigurations

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
    assert settings.plugins.strategy == Strategy(StrategyType.MOST_ALLOCATED)


def test_resources_that_are_scored() -> None:
    gpu = {"name": "example.com/gpu", "weight": 5}
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    ratio = {"type": "RequestedToCapacityRatio", "resources": [gpu], "requestedToCapacityRatio": {"shape": shape}}
    arguments = [
        {"name": "NodeResourcesFit", "args": {"scoringStrategy": ratio}},
        {"name": "NodeResourcesBalancedAllocation", "args": {"resources": [{"name": "cpu"}, {"name": "a.b/c"}]}},
    ]
    plugins = _convert(profiles=[{"pluginConfig": arguments}]).settings.plugins
    assert plugins.strategy == Strategy(
        StrategyType.REQUESTED_TO_CAPACITY_RATIO,
        (ScoredResource("example.com/gpu", 5),),
        (ShapePoint(0, 0), ShapePoint(100, 10)),
    )
    assert plugins.balanced_resources == (ScoredResource("cpu"), ScoredResource("a.b/c"))


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


def test_profiles_have_plugins_and_arguments_of_their_own() -> None:
    configured = _convert(
        profiles=[
            {"schedulerName": "spread", "plugins": {"multiPoint": {"disabled": [{"name": "ImageLocality"}]}}},
            {
                "schedulerName": "pack",
                "plugins": {"score": {"enabled": [{"name": "NodeAffinity", "weight": 7}]}},
                "pluginConfig": [
                    {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}},
                    {"name": "DynamicResources", "args": {"filterTimeout": "5s"}},
                ],
            },
        ],
    ).settings
    assert configured.names == ("spread", "pack")
    spread, pack = configured.by_profile().values()
    assert (spread.filter_seconds, pack.filter_seconds) == (10, 5)
    assert (spread.plugins.strategy, pack.plugins.strategy) == (None, Strategy(StrategyType.MOST_ALLOCATED))
    assert "ImageLocality" not in (spread.plugins.order or ())
    assert "ImageLocality" in (pack.plugins.order or ())
    assert pack.plugins.weights == {"NodeAffinity": 7}
    table = str(profiles.default(configured, clock=clock.SystemClock(), rng=random.Random()))
    assert table.count("Profile ") == 2
    assert "NodeAffinity                     7" in table


def test_upstreams_defaults_of_names() -> None:
    assert _convert(profiles=[{}]).settings.names == ("default-scheduler",)
    assert _convert(leaderElection={"resourceName": ""}).lease_name == lease.LeaseName("kube-system", "kube-scheduler")


@pytest.mark.parametrize(("fields", "want"), refusedconfigurations.CASES)
def test_upstreams_refusals(fields: dict[str, Any], want: str) -> None:
    with pytest.raises(errors.InvalidValueError) as refused:
        _convert(**fields)
    assert str(refused.value) == want


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param({"kind": "Other"}, 'no kind "Other" is registered for version "kubescheduler', id="kind"),
        pytest.param({"apiVersion": "kubescheduler.config.k8s.io/v1beta3"}, "config.k8s.io/v1beta3", id="version"),
        pytest.param({"unknown": 1}, "strict decoding error: Object contains unknown field `unknown`", id="unknown"),
        pytest.param(
            {"profiles": [{"schedulerName": "a"}, {"schedulerName": "a"}]},
            'profiles[1].schedulerName: Duplicate value: "a"',
            id="duplicate-name",
        ),
        pytest.param(
            {"leaderElection": {"retryPeriod": "soon"}},
            'leaderElection.retryPeriod: time: invalid duration "soon"',
            id="duration",
        ),
        pytest.param(
            {"leaderElection": {"retryPeriod": "12s"}},
            'leaderElection.retryPeriod: Invalid value: "12s": must be less than `RenewDeadline`',
            id="retry-period",
        ),
        pytest.param(
            {"percentageOfNodesToScore": 50},
            "percentageOfNodesToScore: Invalid value: 50: not supported by drachma",
            id="half-of-the-nodes",
        ),
        pytest.param(
            {"extenders": [{"urlPrefix": "http://x"}]},
            'extenders: Invalid value: "http://x": not supported by drachma',
            id="extender",
        ),
        pytest.param({"delayCacheUntilActive": True}, "delayCacheUntilActive: Invalid value: true: not su", id="delay"),
        pytest.param(
            refusedconfigurations.disabled("filter", "NodeAffinity"),
            "profiles[0].plugins: NodeAffinity at PreFilter, Score only: not supported",
            id="one-of-several-points",
        ),
        pytest.param(
            refusedconfigurations.arguments("InterPodAffinity", hardPodAffinityWeight=5),
            "args.hardPodAffinityWeight: Invalid value: 5: not supported by drachma; expected 1",
            id="argument",
        ),
        pytest.param(
            refusedconfigurations.arguments("NodeResourcesFit", scoringStrategy="LeastAllocated"),
            "args.scoringStrategy: 'LeastAllocated': expected an object",
            id="strategy",
        ),
        pytest.param(
            refusedconfigurations.arguments("NodeAffinity", kind="Other"),
            "args.kind: 'Other': expected 'NodeAffinityArgs'",
            id="kind-of-args",
        ),
        pytest.param(
            refusedconfigurations.arguments("DynamicResources", filterTimeout="soon"),
            'time: invalid duration "soon"',
            id="timeout",
        ),
    ],
)
def test_own_refusals(fields: dict[str, Any], want: str) -> None:
    with pytest.raises(errors.InvalidValueError) as refused:
        _convert(**fields)
    assert want in str(refused.value)


def test_arguments_of_unknown_plugins_are_ignored_as_upstream_does() -> None:
    assert _convert(**refusedconfigurations.arguments("Mine", a=1)).settings == _convert().settings


def test_a_refusal_names_the_file(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "scheduler.yaml"
    for text, problem in (("a: [", "not YAML"), ("- 1", "expected a Kube")):
        path.write_text(text)
        with pytest.raises(errors.InvalidValueError, match=f"^configuration {path}: {problem}"):
            schedulerconfiguration.read(path, Settings())
    with pytest.raises(errors.InvalidValueError, match="missing: No such file"):
        schedulerconfiguration.read(tmp_path / "missing", Settings())
