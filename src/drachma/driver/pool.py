"""Pools as drivers describe them: devices in order of preference, however many there are."""

from collections.abc import Iterable, Mapping
from typing import Self

import msgspec

from drachma.api import nodeselector, resourceslice
from drachma.driver.devices import DeviceBuilder
from drachma.driver.partitions import Partitions


class Pool(msgspec.Struct, frozen=True):
    """Devices that are managed together. The allocator tries them in their order.

    Pools of a node are for that node. A pool of a network says with a selector or ``all_nodes`` who may use it; where
    devices say that themselves, none of both is set.
    """

    name: str
    devices: tuple[resourceslice.Device, ...] = ()
    counter_sets: tuple[resourceslice.CounterSet, ...] = ()
    node_selector: nodeselector.NodeSelector | None = None
    all_nodes: bool = False
    skip_node_operations: tuple[str, ...] = ()

    def having(self, *added: DeviceBuilder | Partitions) -> Self:
        """With devices more; partitions bring their counters."""
        devices: list[resourceslice.Device] = list(self.devices)
        counter_sets = list(self.counter_sets)
        for each in added:
            if isinstance(each, Partitions):
                counter_sets.append(each.counter_set)
                devices += _built(each.devices)
            else:
                devices += _built((each,))
        return msgspec.structs.replace(self, devices=tuple(devices), counter_sets=tuple(counter_sets))

    def on_nodes(self, nodes: Mapping[str, str] | nodeselector.NodeSelector) -> Self:
        """Return a pool of a network that nodes with all these labels can use, or those that are selected."""
        if isinstance(nodes, nodeselector.NodeSelector):
            return msgspec.structs.replace(self, node_selector=nodes)
        labels = tuple(
            nodeselector.NodeSelectorRequirement(key=key, operator="In", values=(value,))
            for key, value in nodes.items()
        )
        term = nodeselector.NodeSelectorTerm(match_expressions=labels)
        return msgspec.structs.replace(self, node_selector=nodeselector.NodeSelector(node_selector_terms=(term,)))

    def on_all_nodes(self) -> Self:
        """Return a pool of a network that all nodes can use."""
        return msgspec.structs.replace(self, all_nodes=True)


def pool(name: str, devices: Iterable[DeviceBuilder | Partitions] = ()) -> Pool:
    """Return a pool of these devices."""
    return Pool(name).having(*devices)


def _built(builders: Iterable[DeviceBuilder]) -> list[resourceslice.Device]:
    return [each.build() for each in builders]
