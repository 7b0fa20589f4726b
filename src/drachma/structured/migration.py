"""Migration: objects of v1alpha2 as permanent objects of v1, with notes on everything that v1 cannot express.

Unlike a counterpart, which represents a claim while objects of v1alpha2 exist, the result is what a person would write
in v1: classes keep their names, filters become selectors of classes, and selectors are as short as the types of
published attributes allow. Parameters are folded into classes and claims, and are no longer needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec
from msgspec import structs

from drachma import cel, errors
from drachma.api import deviceclass, devices, meta, resourceclaim, resourceclaimtemplate
from drachma.api.v1alpha2 import parameters, resourceclass, resourceslice
from drachma.api.v1alpha2 import resourceclaim as alpha
from drachma.api.v1alpha2 import resourceclaimtemplate as alpha_template
from drachma.claims import identity, standins
from drachma.structured import claims, model, namedresources, requests, resolution, selectors, slices
from drachma.values import generatedname

_KUBECTL: Final = "kubectl.kubernetes.io/"
_NAME_LENGTH: Final = 253
_PREFIX_LENGTH: Final = 240


class Asked(NamedTuple):
    """Migrated claim or template, and the needs that it comes from, by request."""

    label: str
    namespace: str
    spec: resourceclaim.ResourceClaimSpec
    needs: Mapping[str, requests.Need]


class Migration(msgspec.Struct, frozen=True, kw_only=True):
    """Objects of v1 in the order of their origins, notes, and migrated claims."""

    objects: tuple[meta.Object, ...]
    notes: tuple[str, ...]
    asked: tuple[Asked, ...]
    pools: tuple[slices.Pool, ...]


class Lookup:
    """Lookup of classes and parameters among objects."""

    def __init__(self, objects: Iterable[meta.Object]) -> None:
        self.classes: Final[dict[str, resourceclass.ResourceClass]] = {}
        self.of_claims: Final[dict[str, list[parameters.ResourceClaimParameters]]] = {}
        self.of_classes: Final[list[parameters.ResourceClassParameters]] = []
        for each in objects:
            match each:
                case resourceclass.ResourceClass():
                    self.classes[each.metadata.name] = each
                case parameters.ResourceClaimParameters():
                    self.of_claims.setdefault(each.metadata.namespace, []).append(each)
                case parameters.ResourceClassParameters():
                    self.of_classes.append(each)

    def resource_class(self, name: str) -> resourceclass.ResourceClass | None:
        return self.classes.get(name)

    def claim_parameters(self, namespace: str) -> Iterable[parameters.ResourceClaimParameters]:
        return self.of_claims.get(namespace, ())

    def class_parameters(self) -> Iterable[parameters.ResourceClassParameters]:
        return self.of_classes


def migrate(objects: Iterable[meta.Object]) -> Migration:
    """Migrate objects that belong together. Objects of other versions are left out."""
    return _Migrator(tuple(objects)).run()


class _Migrator:
    def __init__(self, objects: tuple[meta.Object, ...]) -> None:
        self._objects = objects
        self._lookup = Lookup(objects)
        self._notes: list[str] = []
        self._requests: list[Asked] = []
        sources = [
            each for each in objects if isinstance(each, resourceslice.NodeResourceSlice | resourceslice.ResourceSlice)
        ]
        self._pools = slices.pools_of(sources)
        self._types = _types(sources)
        self._device_classes = {name: self._device_classes_of(class_) for name, class_ in self._lookup.classes.items()}
        """Drivers of every device class that a class becomes."""

    def run(self) -> Migration:
        migrated: list[meta.Object] = []
        wishes: list[meta.Object] = []
        for each in self._objects:
            match each:
                case alpha.ResourceClaim():
                    wishes += self._claim(each)
                case alpha_template.ResourceClaimTemplate():
                    wishes += self._template(each)
        for class_ in self._lookup.classes.values():
            migrated += self._class(class_)
        migrated += wishes
        for pool in self._pools:
            self._notes += (f"node {pool.node}, driver {pool.driver}: {each}" for each in pool.omissions)
            migrated += pool.slices(1, name=pool.node or standins.SUFFIX)
        return Migration(
            objects=tuple(migrated), notes=tuple(self._notes), asked=tuple(self._requests), pools=self._pools
        )

    # Classes

    def _class(self, class_: resourceclass.ResourceClass) -> list[meta.Object]:
        label = f"ResourceClass {class_.metadata.name}"
        if not class_.structured_parameters:
            self._note(label, f"driver {class_.driver_name} allocates its claims itself, for which v1 has nothing")
            return []
        if class_.suitable_nodes is not None:
            self._note(label, "suitableNodes: device classes have none; give pods node affinity instead")
        class_parameters = resolution.class_parameters(class_, self._lookup)
        if isinstance(class_parameters, resolution.Waiting):
            self._note(label, f"{class_parameters.reason}: its filters are not known")
            class_parameters = parameters.ResourceClassParameters()
        own, *further_classes = self._device_classes[class_.metadata.name].items()
        for name, drivers in further_classes:
            self._note(label, f"its filters are of one driver each: what claims ask of {drivers[0]} is of class {name}")
        return [
            self._device_class(class_, name, drivers, class_parameters) for name, drivers in (own, *further_classes)
        ]

    def _device_class(
        self,
        class_: resourceclass.ResourceClass,
        name: str,
        drivers: tuple[str, ...],
        class_parameters: parameters.ResourceClassParameters,
    ) -> meta.Object:
        config = []
        for driver in drivers:
            vendor = requests.vendor_of_class(class_parameters, driver)
            if isinstance(vendor, dict) and vendor:
                opaque = devices.OpaqueDeviceConfiguration(driver=driver, parameters=vendor)
                config.append(deviceclass.DeviceClassConfiguration(opaque=opaque))
        spec = deviceclass.DeviceClassSpec(
            selectors=(self._class_selector(drivers, class_parameters),), config=tuple(config)
        )
        return deviceclass.DeviceClass(metadata=structs.replace(_metadata(class_.metadata), name=name), spec=spec)

    def _device_classes_of(self, class_: resourceclass.ResourceClass) -> dict[str, tuple[str, ...]]:
        """Return the device classes that a class becomes, its own first, each with its drivers.

        That is one, unless there are filters and several drivers. A filter applies to devices of its driver only, and a
        selector to all devices. If the filter fails for a device of another driver, no claim would get anything.
        """
        name, drivers = class_.metadata.name, self._drivers_of(class_)
        class_parameters = resolution.class_parameters(class_, self._lookup)
        has_filters = isinstance(class_parameters, parameters.ResourceClassParameters) and bool(
            class_parameters.filters
        )
        if len(drivers) == 1 or not has_filters:
            return {name: drivers}
        names = [name, *(f"{name}.{driver}" for driver in drivers[1:])]
        names = [
            each if len(each) <= _NAME_LENGTH else generatedname.derived(f"{name[:_PREFIX_LENGTH]}-", each)
            for each in names
        ]
        return {each: (driver,) for each, driver in zip(names, drivers, strict=True)}

    def _class_selector(
        self, drivers: tuple[str, ...], of_class: parameters.ResourceClassParameters
    ) -> devices.DeviceSelector:
        filters = requests.filters(of_class)
        terms = []
        for driver in drivers:
            expressions = [self._translated(text, driver) for _, text in filters.get(driver, ())]
            terms.append(selectors.conjunction(selectors.all_devices_selector(driver), *expressions))
        expression = terms[0] if len(terms) == 1 else " || ".join(f"({term})" for term in terms)
        return devices.DeviceSelector(cel=devices.CELDeviceSelector(expression=expression))

    def _drivers_of(self, class_: resourceclass.ResourceClass) -> tuple[str, ...]:
        """Return the driver of a class, and other drivers whose resources its claims request."""
        drivers = [str(class_.driver_name)]
        for each in self._objects:
            match each:
                case alpha.ResourceClaim():
                    spec = each.spec
                case alpha_template.ResourceClaimTemplate():
                    spec = each.spec.spec
                case _:
                    continue
            resolved = resolution.resolve(spec, each.metadata.namespace, self._lookup)
            if spec.resource_class_name == class_.metadata.name and isinstance(resolved, resolution.Resolution):
                drivers += requests.drivers(resolved.of_claim)
        return tuple(dict.fromkeys(drivers))

    # Claims

    def _claim(self, claim: alpha.ResourceClaim) -> list[meta.Object]:
        label = f"ResourceClaim {identity.label(claim.metadata)}"
        spec = self._spec(label, claim.spec, claim.metadata.namespace)
        if spec is None:
            return []
        if claim.status.allocation is not None:
            self._note(label, "is allocated; what it was given is not carried over: have its pods end first")
        return [resourceclaim.ResourceClaim(metadata=_metadata(claim.metadata), spec=spec)]

    def _template(self, template: alpha_template.ResourceClaimTemplate) -> list[meta.Object]:
        label = f"ResourceClaimTemplate {identity.label(template.metadata)}"
        spec = self._spec(label, template.spec.spec, template.metadata.namespace)
        if spec is None:
            return []
        inner = resourceclaimtemplate.ResourceClaimTemplateSpec(metadata=template.spec.metadata, spec=spec)
        return [resourceclaimtemplate.ResourceClaimTemplate(metadata=_metadata(template.metadata), spec=inner)]

    def _spec(
        self, label: str, spec: alpha.ResourceClaimSpec, namespace: str
    ) -> resourceclaim.ResourceClaimSpec | None:
        resolved = resolution.resolve(spec, namespace, self._lookup)
        if isinstance(resolved, resolution.Waiting):
            self._note(label, f"is not migrated: {resolved.reason}")
            return None
        try:
            needs = requests.needs(resolved.of_claim, resolved.of_class)
            migrated_spec = self._wish(spec.resource_class_name, resolved, needs)
        except (errors.InvalidValueError, cel.CompilationError) as error:
            self._note(label, f"is not migrated: {error}")
            return None
        if spec.allocation_mode == alpha.IMMEDIATE:
            self._note(label, "allocationMode Immediate: claims of v1 do not stay allocated when no pod uses them")
        if not resolved.of_claim.shareable:
            self._note(label, "is not shareable: claims of v1 can be used by several pods at a time")
        self._requests.append(Asked(label, namespace, migrated_spec, {need.name: need for need in needs}))
        return migrated_spec

    def _wish(
        self, class_name: str, resolved: resolution.Resolution, needs: tuple[requests.Need, ...]
    ) -> resourceclaim.ResourceClaimSpec:
        device_classes = self._device_classes[class_name]
        own = structs.replace(resolved, of_class=parameters.ResourceClassParameters())
        requested = []
        for need in needs:
            name, drivers = next(each for each in device_classes.items() if need.driver in each[1])
            expressions = [] if len(drivers) == 1 else [selectors.all_devices_selector(need.driver)]
            if need.selector.strip() != "true":
                expressions.append(self._translated(need.selector, need.driver))
            combined = (selectors.conjunction(*expressions),) if expressions else ()
            requested.append(claims.request_for(need, device_class=name, expressions=combined))
        return resourceclaim.ResourceClaimSpec(
            devices=resourceclaim.DeviceClaim(requests=tuple(requested), config=tuple(claims.configuration(own, needs)))
        )

    def _translated(self, selector: str, driver: str) -> str:
        return selectors.translate(selector, driver, types=self._types.get(driver, {}))

    def _note(self, label: str, text: str) -> None:
        self._notes.append(f"{label}: {text}")


def _types(sources: Iterable[model.Slice]) -> dict[str, dict[str, str]]:
    """Return the types of attributes by driver, for attributes with one type in all slices."""
    published_types: dict[str, dict[str, set[str]]] = {}
    for source in sources:
        of_driver = published_types.setdefault(model.driver_of(source), {})
        for resource in namedresources.resources_of(source) or ():
            for name, type_ in resource.types.items():
                of_driver.setdefault(name, set()).add(type_)
    return {
        driver: {name: next(iter(types)) for name, types in attributes.items() if len(types) == 1}
        for driver, attributes in published_types.items()
    }


def _metadata(own: meta.ObjectMeta) -> meta.ObjectMeta:
    """Return the metadata that people write, without additions of the server."""
    annotations = {key: text for key, text in own.annotations.items() if not key.startswith(_KUBECTL)}
    return meta.ObjectMeta(
        name=own.name,
        namespace=own.namespace,
        labels=own.labels,
        annotations=annotations or meta.ABSENT_META.annotations,
    )
