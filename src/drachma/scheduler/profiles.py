"""The default profile: plugins in upstream's order and with upstream's weights.

To add a plugin, add its module and one line here.
"""

from __future__ import annotations

import random
import uuid
from typing import Final

from drachma import allocator
from drachma.api import gates
from drachma.runtime import clock
from drachma.scheduler import settings
from drachma.scheduler.framework import resourcescoring
from drachma.scheduler.framework.profile import Entry, Profile
from drachma.scheduler.framework.profilemap import ProfileMap
from drachma.scheduler.plugins import (
    balancedallocation,
    defaultpreemption,
    gangscheduling,
    imagelocality,
    interpodaffinity,
    nodeaffinity,
    nodedeclaredfeatures,
    nodename,
    nodeports,
    noderesourcesfit,
    nodeunschedulable,
    nodevolumelimits,
    schedulinggates,
    structuredparameters,
    tainttoleration,
    volumerestrictions,
    volumezone,
)
from drachma.scheduler.plugins.dynamicresources import options
from drachma.scheduler.plugins.dynamicresources.plugin import DevicePolicy, DynamicResources, PackingPolicy
from drachma.scheduler.plugins.podtopologyspread.plugin import PodTopologySpread
from drachma.scheduler.plugins.volumebinding.plugin import VolumeBinding

_POLICY_WEIGHT: Final = 10
"""Weight of a policy that the user chose. It decides unless most other plugins are against it."""

_PACKING_WEIGHT: Final = 1000
"""Weight of a packing policy, which decides between nodes that it rates differently."""


def default(settings: settings.Settings, *, clock: clock.Clock, rng: random.Random) -> Profile:
    """Return the profile of a scheduler with these settings; with several profiles, one that chooses by the pod."""
    if settings.more_profiles:
        return ProfileMap({name: _build(each, clock, rng) for name, each in settings.by_profile().items()})
    return _build(settings, clock, rng)


def _build(settings: settings.Settings, clock: clock.Clock, rng: random.Random) -> Profile:
    enabled = settings.gates
    seconds = settings.filter_seconds if enabled.on(gates.Gate.SCHEDULER_FILTER_TIMEOUT) else None
    devices = options.Options(
        enabled=enabled,
        patience=options.Patience(seconds, clock.monotonic),
        binding_seconds=settings.binding_seconds,
        now=clock.utc,
        new_uid=lambda: str(uuid.uuid4()),
        chance=rng,
        policy=settings.policy,
    )
    packing = settings.policy if isinstance(settings.policy, allocator.NodePacking) else None
    packs = settings.policy in (allocator.Policy.PACK, allocator.Policy.WHOLE_PARTITIONS)
    preference = resourcescoring.StrategyType.MOST_ALLOCATED if packs else resourcescoring.StrategyType.LEAST_ALLOCATED
    strategy = settings.plugins.strategy or resourcescoring.Strategy(preference)
    binds_volumes = settings.has_volume_controllers
    volume_seconds = settings.volume_binding_seconds
    volume_seconds = settings.binding_seconds if volume_seconds is None else volume_seconds
    prefers = settings.policy is not allocator.Policy.FIRST_FIT and packing is None
    return Profile(
        _choose(
            settings.plugins,
            Entry(schedulinggates.SchedulingGates()),
            *((Entry(gangscheduling.GangScheduling()),) if settings.has_gangs else ()),
            Entry(nodeunschedulable.NodeUnschedulable()),
            Entry(nodename.NodeName()),
            Entry(tainttoleration.TaintToleration(), weight=3),
            Entry(nodeaffinity.NodeAffinity(), weight=2),
            Entry(nodeports.NodePorts()),
            Entry(noderesourcesfit.NodeResourcesFit(enabled, strategy=strategy), weight=1),
            Entry(volumerestrictions.VolumeRestrictions()),
            Entry(nodevolumelimits.NodeVolumeLimits()),
            Entry(VolumeBinding(binding_seconds=volume_seconds, has_controllers=binds_volumes)),
            Entry(volumezone.VolumeZone(has_controllers=binds_volumes)),
            Entry(PodTopologySpread(), weight=2),
            Entry(interpodaffinity.InterPodAffinity(), weight=2),
            *((Entry(structuredparameters.StructuredParameters()),) if enabled.on(gates.Gate.FIRST_ALPHA) else ()),
            # Without the feature, pods get nodes as if they had no claims, and nodes refuse to run them (KEP-4381).
            *((Entry(DynamicResources(devices), weight=2),) if enabled.on(gates.Gate.CORE) else ()),
            *((Entry(DevicePolicy(), weight=_POLICY_WEIGHT),) if prefers else ()),
            *((Entry(PackingPolicy(packing.name, rng), weight=_PACKING_WEIGHT),) if packing is not None else ()),
            *(
                (Entry(nodedeclaredfeatures.NodeDeclaredFeatures()),)
                if enabled.on(gates.Gate.NODE_DECLARED_FEATURES)
                else ()
            ),
            Entry(defaultpreemption.DefaultPreemption(rng)),
            Entry(
                balancedallocation.NodeResourcesBalancedAllocation(
                    enabled, resources=settings.plugins.balanced_resources
                ),
                weight=1,
            ),
            Entry(imagelocality.ImageLocality(), weight=1),
        )
    )


def _choose(plugins: settings.PluginSettings, *entries: Entry) -> tuple[Entry, ...]:
    """Return the entries that the settings choose, in their order and with their weights."""
    by_name = {each.plugin.name: each for each in entries}
    order = by_name if plugins.order is None else plugins.order
    return tuple(by_name[name]._replace(weight=plugins.weights.get(name, by_name[name].weight)) for name in order)
