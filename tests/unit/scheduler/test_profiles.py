"""The default profile is upstream's, as far as its plugins are here."""

import random

from drachma.scheduler import profiles
from drachma.scheduler.settings import Settings
from drachma.testing.manualclock import ManualClock

UPSTREAM = {
    "SchedulingGates": None,
    "PrioritySort": None,
    "NodeUnschedulable": None,
    "NodeName": None,
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodePorts": None,
    "NodeResourcesFit": 1,
    "VolumeRestrictions": None,
    "NodeVolumeLimits": None,
    "VolumeBinding": None,
    "VolumeZone": None,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
    "NodeDeclaredFeatures": None,
    "DefaultPreemption": None,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
    "DefaultBinder": None,
}
"""The plugins of kube-scheduler's default profile in their order, with the weights of those that score.

DynamicResources is put before DefaultPreemption: it is better to free a claim that nobody uses than to evict a pod.
"""

ELSEWHERE = {
    "PrioritySort": "the order of the queue",
    "DefaultBinder": "the binder",
}
"""Parts of drachma that are not plugins."""

PROFILE = profiles.default(Settings(), clock=ManualClock(), rng=random.Random(1))


def test_order_is_upstreams() -> None:
    names = [entry.plugin.name for entry in PROFILE.entries]
    assert names == [name for name in UPSTREAM if name not in ELSEWHERE]


def test_weights_are_upstreams() -> None:
    weights = {entry.plugin.name: entry.weight if entry.is_scoring else None for entry in PROFILE.entries}
    assert weights == {name: UPSTREAM[name] for name in weights}


def test_it_can_be_printed() -> None:
    lines = [line.split(maxsplit=1) for line in str(PROFILE).splitlines()]
    assert [line[0] for line in lines] == ["PLUGIN", *(entry.plugin.name for entry in PROFILE.entries)]
    shown = dict(line for line in lines if len(line) == 2)
    assert shown["NodePorts"] == "Filter, EnqueueExtensions"
    assert shown["TaintToleration"].split(maxsplit=1) == ["3", "Filter, Score, EnqueueExtensions"]
    assert shown["DynamicResources"].split(maxsplit=1) == [
        "2",
        "PreEnqueue, PreFilter, Filter, PostFilter, Score, Reserve, PreBind, EnqueueExtensions",
    ]
