"""Configurations that kube-scheduler refuses, with its messages."""

from typing import Any, Final

import pytest


def profile(**fields: Any) -> dict[str, Any]:
    return {"profiles": [fields]}


def enabled(point: str, *names: str) -> dict[str, Any]:
    return profile(plugins={point: {"enabled": [{"name": name} for name in names]}})


def disabled(point: str, name: str) -> dict[str, Any]:
    return profile(plugins={point: {"disabled": [{"name": name}]}})


def arguments(plugin: str, **arguments: Any) -> dict[str, Any]:
    return profile(pluginConfig=[{"name": plugin, "args": arguments}])


def _strategy(**fields: Any) -> dict[str, Any]:
    return arguments("NodeResourcesFit", scoringStrategy=fields)


def _shape(*points: dict[str, int]) -> dict[str, Any]:
    return _strategy(type="RequestedToCapacityRatio", requestedToCapacityRatio={"shape": list(points)})


_CREATING = "initializing profiles: creating profile for scheduler name default-scheduler: "
_FIT = _CREATING + 'initializing plugin "NodeResourcesFit": '
_SHAPE = "scoringStrategy.requestedToCapacityRatio.shape"
_CONSTRAINT = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
_SORTS = {"queueSort": {"enabled": [{"name": "PrioritySort"}]}}
_REMOVED = 'was invalid in version "v1" (KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")'


CASES: Final = [
    pytest.param(
        {"parallelism": 0},
        "parallelism: Invalid value: 0: should be an integer value greater than zero",
        id="parallelism",
    ),
    pytest.param(profile(schedulerName=""), "profiles[0].schedulerName: Required value", id="no-name"),
    pytest.param(
        {"profiles": [{"schedulerName": "a"}, {}]},
        "profiles[1].schedulerName: Required value",
        id="second-without-name",
    ),
    pytest.param(
        {"percentageOfNodesToScore": 101},
        "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
        id="percentage",
    ),
    pytest.param(
        profile(percentageOfNodesToScore=-1),
        "profiles[0].percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]",
        id="percentage-of-profile",
    ),
    pytest.param(
        {"podInitialBackoffSeconds": 0},
        "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0",
        id="initial-backoff",
    ),
    pytest.param(
        {"podInitialBackoffSeconds": 3, "podMaxBackoffSeconds": 2},
        "podMaxBackoffSeconds: Invalid value: 2: must be greater than or equal to PodInitialBackoffSeconds",
        id="most-backoff",
    ),
    pytest.param(
        {"leaderElection": {"resourceLock": "endpoints"}},
        'leaderElection.resourceLock: Invalid value: "endpoints": resourceLock value must be "leases"',
        id="lock",
    ),
    pytest.param(
        {"leaderElection": {"renewDeadline": "20s"}},
        'leaderElection.leaseDuration: Invalid value: "20s": must be greater than `RenewDeadline`',
        id="renew-deadline",
    ),
    pytest.param(
        {"leaderElection": {"leaseDuration": "-1s"}},
        '[leaderElection.leaseDuration: Invalid value: "-1s": must be greater than zero, '
        'leaderElection.leaseDuration: Invalid value: "10s": must be greater than `RenewDeadline`]',
        id="lease-duration",
    ),
    pytest.param(
        {"clientConnection": {"burst": -1}},
        "clientConnection.burst: Invalid value: -1: must be non-negative",
        id="burst",
    ),
    pytest.param(
        {"profiles": [{"schedulerName": "a", "plugins": _SORTS}, {"schedulerName": "b"}]},
        'profiles[1].plugins.queueSort: Invalid value: {"Enabled":null,"Disabled":null}: '
        "must be the same for all profiles",
        id="queue-sort",
    ),
    pytest.param(
        {
            "profiles": [
                {"schedulerName": "a"},
                {"schedulerName": "b", "plugins": {"queueSort": {"disabled": [{"name": "*"}]}}},
            ]
        },
        'profiles[1].plugins.queueSort: Invalid value: {"Enabled":null,"Disabled":[{"Name":"*","Weight":0}]}: '
        "must be the same for all profiles",
        id="queue-sort-disabled",
    ),
    pytest.param(
        enabled("queueSort", "PrioritySort", "Mine"),
        "profiles[0].plugins.queueSort.Enabled: Invalid value: 2: only one queue sort plugin can be enabled",
        id="two-queue-sorts",
    ),
    pytest.param(enabled("score", "Mine"), _CREATING + 'ScorePlugin "Mine" does not exist', id="no-plugin"),
    pytest.param(
        enabled("multiPoint", "Mine"), _CREATING + 'PreFilterPlugin "Mine" does not exist', id="no-multi-point-plugin"
    ),
    pytest.param(
        enabled("filter", "ImageLocality"),
        _CREATING + 'plugin "ImageLocality" does not extend FilterPlugin plugin',
        id="does-not-extend",
    ),
    pytest.param(
        enabled("filter", "NodeName", "NodeName"),
        _CREATING + 'plugin "NodeName" already registered as "FilterPlugin"',
        id="twice",
    ),
    pytest.param(
        enabled("multiPoint", "NodeName", "NodeName"),
        _CREATING + 'plugin "NodeName" already registered as "PreFilterPlugin"',
        id="twice-multi-point",
    ),
    pytest.param(
        disabled("bind", "*"),
        _CREATING + 'at least one bind plugin is needed for profile with scheduler name "default-scheduler"',
        id="no-binder",
    ),
    pytest.param(
        disabled("queueSort", "*"),
        _CREATING + "only one queue sort plugin required for profile with "
        'scheduler name "default-scheduler", but got 0',
        id="no-queue-sort",
    ),
    pytest.param(
        enabled("filter", "EBSLimits"),
        f'profiles[0].plugins.filter.enabled[0]: Invalid value: "EBSLimits": {_REMOVED}',
        id="removed",
    ),
    pytest.param(
        arguments("EBSLimits"),
        f'profiles[0].pluginConfig[0]: Invalid value: "EBSLimits": {_REMOVED}',
        id="removed-arguments",
    ),
    pytest.param(
        profile(plugins={"score": {"enabled": [{"name": "NodeAffinity", "weight": -1}]}}),
        _CREATING + "score plugins: total score of Score plugins could overflow",
        id="weight",
    ),
    pytest.param(
        profile(pluginConfig=[{"name": "NodeAffinity"}, {"name": "NodeAffinity"}]),
        'profiles[0].pluginConfig[1]: Duplicate value: "NodeAffinity"',
        id="arguments-twice",
    ),
    pytest.param(
        arguments("NodeAffinity", a=1),
        "strict decoding error: decoding .profiles[0].pluginConfig[0]: strict decoding error: decoding args "
        'for plugin NodeAffinity: strict decoding error: unknown field "a"',
        id="unknown-argument",
    ),
    pytest.param(
        arguments("InterPodAffinity", hardPodAffinityWeight=101),
        "profiles[0].pluginConfig[0].args.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]",
        id="affinity-weight",
    ),
    pytest.param(
        arguments("NodeResourcesFit", scoringStrategy={"type": "Ratio"}),
        _CREATING + 'initializing plugin "NodeResourcesFit": scoringStrategy.type: Unsupported value: "Ratio": '
        'supported values: "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"',
        id="strategy",
    ),
    pytest.param(
        arguments("NodeResourcesFit", scoringStrategy={"type": "RequestedToCapacityRatio"}),
        _CREATING + 'initializing plugin "NodeResourcesFit": scoringStrategy.requestedToCapacityRatio: '
        "Required value: must be specified when type is RequestedToCapacityRatio",
        id="ratio",
    ),
    pytest.param(
        _strategy(type="LeastAllocated", resources=[{"name": "cpu", "weight": 101}]),
        _FIT + "scoringStrategy.resources[0].weight: Invalid value: 101: "
        "resource weight of cpu not in valid range (0, 100]",
        id="weight-of-a-resource",
    ),
    pytest.param(
        _strategy(type="MostAllocated", requestedToCapacityRatio={"shape": [{}]}),
        _FIT + "scoringStrategy.requestedToCapacityRatio: Forbidden: "
        "must be nil when type is not RequestedToCapacityRatio",
        id="shape-of-another-strategy",
    ),
    pytest.param(
        _strategy(resources=[{"name": "cpu"}]),
        _FIT + 'scoringStrategy.type: Unsupported value: "": '
        'supported values: "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"',
        id="strategy-without-a-type",
    ),
    pytest.param(_shape(), _FIT + f"{_SHAPE}: Required value: at least one point must be specified", id="empty-shape"),
    pytest.param(
        _shape({"utilization": 9}, {"utilization": 9}),
        _FIT + f"{_SHAPE}[1].utilization: Invalid value: 9: values must be sorted in increasing order",
        id="points-out-of-order",
    ),
    pytest.param(
        _shape({"utilization": 101}),
        _FIT + f"{_SHAPE}[0].utilization: Invalid value: 101: not in valid range [0, 100]",
        id="beyond-full",
    ),
    pytest.param(
        _shape({"score": 11}), _FIT + f"{_SHAPE}[0].score: Invalid value: 11: not in valid range [0, 10]", id="score"
    ),
    pytest.param(
        arguments("NodeResourcesBalancedAllocation", resources=[{"name": "cpu"}, {"name": "cpu"}]),
        'profiles[0].pluginConfig[0].args.resources[1].name: Duplicate value: "cpu"',
        id="balance-twice",
    ),
    pytest.param(
        arguments("DynamicResources", filterTimeout="-1s"),
        'profiles[0].pluginConfig[0].args.filterTimeout: Invalid value: "-1s": must be zero or positive',
        id="filter-timeout",
    ),
    pytest.param(
        arguments("DynamicResources", bindingTimeout="1ms"),
        'profiles[0].pluginConfig[0].args.bindingTimeout: Invalid value: "1ms": must be at least 1 second',
        id="binding-timeout",
    ),
    pytest.param(
        arguments("VolumeBinding", bindTimeoutSeconds=-1),
        "profiles[0].pluginConfig[0].args.bindTimeoutSeconds: Invalid value: -1: "
        "invalid BindTimeoutSeconds, should not be a negative value",
        id="volume-timeout",
    ),
    pytest.param(
        arguments("PodTopologySpread", defaultingType="X"),
        'profiles[0].pluginConfig[0].args.defaultingType: Unsupported value: "X": supported values: "System", "List"',
        id="defaulting",
    ),
    pytest.param(
        arguments("PodTopologySpread", defaultConstraints=[_CONSTRAINT]),
        'profiles[0].pluginConfig[0].args.defaultingType: Invalid value: "System": '
        "when .defaultConstraints are not empty",
        id="default-constraints",
    ),
    pytest.param(
        arguments("DefaultPreemption", minCandidateNodesPercentage=101),
        "profiles[0].pluginConfig[0].args.minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]",
        id="candidates",
    ),
    pytest.param(
        arguments("NodeResourcesBalancedAllocation", resources=[{"name": "cpu", "weight": 3}]),
        "profiles[0].pluginConfig[0].args.resources[0].weight: Invalid value: 3: must be 1",
        id="balance",
    ),
]
"""Fields of a configuration, and the message of kube-scheduler 1.37.1, as parameters of a test."""
