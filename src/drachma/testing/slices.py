"""Builder for ResourceSlice."""

from typing import Self

from msgspec import structs

from drachma.api import meta, nodeselector, resourceslice
from drachma.driver import devices as device_builders
from drachma.testing import builder


class SliceBuilder(builder.Builder[resourceslice.ResourceSlice]):
    """Builds a ResourceSlice."""

    __slots__ = ()

    def on_node(self, name: str) -> Self:
        """For this node only."""
        return self._with_spec(node_name=name)

    def on_nodes(self, selector: nodeselector.NodeSelector) -> Self:
        """For the nodes selected."""
        return self._with_spec(node_selector=selector)

    def on_all_nodes(self) -> Self:
        """For every node."""
        return self._with_spec(all_nodes=True)

    def per_device(self) -> Self:
        """Each device says itself which nodes it is for."""
        return self._with_spec(per_device_node_selection=True)

    def devices(self, *added: device_builders.DeviceBuilder | str) -> Self:
        """With these devices more; a text is the name of a device without attributes."""
        built = tuple(resourceslice.Device(name=entry) if isinstance(entry, str) else entry.build() for entry in added)
        return self._with_spec(devices=(*self._object.spec.devices, *built))

    def counters(self, name: str, **values: device_builders.Amount) -> Self:
        """With one more shared counter set."""
        counters = {key: resourceslice.Counter(value=device_builders.amount(value)) for key, value in values.items()}
        entry = resourceslice.CounterSet(name=name, counters=counters)
        return self._with_spec(shared_counters=(*self._object.spec.shared_counters, entry))

    def _with_spec(self, **changes: object) -> Self:
        return self._with(spec=structs.replace(self._object.spec, **changes))


def resource_slice(
    name: str, *, driver: str, pool: str | None = None, generation: int = 1, slices: int = 1
) -> SliceBuilder:
    """A slice without devices; its pool is named like it unless said otherwise."""
    in_pool = resourceslice.ResourcePool(name=pool or name, generation=generation, resource_slice_count=slices)
    spec = resourceslice.ResourceSliceSpec(driver=driver, pool=in_pool)
    return SliceBuilder(resourceslice.ResourceSlice(metadata=meta.ObjectMeta(name=name), spec=spec))
