"""Slices, parameters and claims of v1alpha2 in terms of v1."""

import msgspec
import pytest

from drachma import errors
from drachma.api import meta, resourceclaim
from drachma.api.v1alpha2 import parameters, references, resourceslice
from drachma.api.v1alpha2 import resourceclaim as alpha
from drachma.api.v1alpha2 import resourceclass as alpha_class
from drachma.structured import claims, counterpart, models, requests, resolution, slices
from drachma.values import quantity

DRIVER = "cards.dra.example.com"
REFERENCE = references.ResourceClaimParametersReference(api_group="dra.example.com", kind="CardParameters", name="mine")
CLASS_REFERENCE = references.ResourceClassParametersReference(
    api_group="dra.example.com", kind="CardClassParameters", name="of-class"
)


def a_slice(*resources: resourceslice.NamedResource, name: str = "s") -> resourceslice.NodeResourceSlice:
    spec = resourceslice.NodeResourceSliceSpec(
        node_name="worker-1", driver_name=DRIVER, named_resources_with_attributes=resources
    )
    return resourceslice.NodeResourceSlice(metadata=meta.ObjectMeta(name=name), spec=spec)


def a_resource(name: str, *attributes: resourceslice.Attribute) -> resourceslice.NamedResource:
    return resourceslice.NamedResource(name=name, attributes=attributes)


def test_quantities_are_capacity_and_all_else_attributes() -> None:
    attribute = resourceslice.Attribute
    given = a_slice(
        a_resource(
            "gpu.0",
            attribute(name="memory", quantity_value=quantity.Quantity.parse("16Gi")),
            attribute(name="runtime-version", version_value="v1.2"),
            attribute(name="ecc", bool_value=False),
            attribute(name="cores", int_value=0),
            attribute(name="model", string_value=""),
            attribute(name="lanes", int_slice=(1, 2)),
            attribute(name="modes", string_slice=("a",)),
        )
    )
    [pool] = slices.pools_of([given])
    [device] = pool.devices
    assert (pool.driver, pool.node, pool.name, pool.omissions) == (DRIVER, "worker-1", "worker-1/v1alpha2", ())
    assert pool.names == {"gpu-0": "gpu.0"}
    assert {name: str(each.value) for name, each in device.capacity.items()} == {"memory": "16Gi"}
    assert {name: msgspec.to_builtins(each) for name, each in device.attributes.items()} == {
        "runtime_version": {"version": "1.2.0"},
        "ecc": {"bool": False},
        "cores": {"int": 0},
        "model": {"string": ""},
        "lanes": {"ints": (1, 2)},
        "modes": {"strings": ("a",)},
    }


@pytest.mark.parametrize(
    ("resources", "want"),
    [
        pytest.param(
            [a_resource("a", resourceslice.Attribute(name="x", string_value="y" * 65))],
            "resource a, attribute x: texts of devices have at most 64 bytes",
            id="long-text",
        ),
        pytest.param(
            [a_resource("a", resourceslice.Attribute(name="x", int_slice=()))],
            "resource a, attribute x: lists of devices are not empty",
            id="empty-list",
        ),
        pytest.param(
            [
                a_resource(
                    "a",
                    resourceslice.Attribute(name="a.b", int_value=1),
                    resourceslice.Attribute(name="a--b", int_value=2),
                )
            ],
            "resource a, attribute a--b: becomes a__b, as another attribute does",
            id="names-that-become-the-same",
        ),
        pytest.param(
            [a_resource("a", *(resourceslice.Attribute(name=f"x{each}", int_value=1) for each in range(33)))],
            "resource a, attribute x32: a device has at most 32 attributes and 48 values",
            id="too-many",
        ),
        pytest.param(
            [a_resource("a.b"), a_resource("a-b")],
            "resource a-b: has the same device name as a.b: a-b",
            id="resources-that-become-the-same",
        ),
    ],
)
def test_what_devices_cannot_express_is_left_out_and_said(
    resources: list[resourceslice.NamedResource], want: str
) -> None:
    assert slices.pool_of(DRIVER, "worker-1", [a_slice(*resources)]).omissions == (want,)


def test_a_resource_that_two_slices_have_is_published_once() -> None:
    pool = slices.pool_of(DRIVER, "worker-1", [a_slice(a_resource("a"), name="x"), a_slice(a_resource("a"), name="y")])
    assert [device.name for device in pool.devices] == ["a"]
    assert pool.omissions == ("resource a: published twice, also in y",)
    assert pool.without({"a"}).devices == ()


def test_a_slice_of_another_model() -> None:
    unknown = resourceslice.NodeResourceSlice(metadata=meta.ObjectMeta(name="s"))
    assert models.inventory(unknown) is None
    assert slices.pool_of("d", "n", [unknown]).omissions == ("slice s: its structured model is not known here",)


# Parameters


class Objects:
    """Lookup of objects in lists."""

    def __init__(
        self,
        *classes: alpha_class.ResourceClass,
        of_claims: tuple[parameters.ResourceClaimParameters, ...] = (),
        of_classes: tuple[parameters.ResourceClassParameters, ...] = (),
    ) -> None:
        self._classes = {each.metadata.name: each for each in classes}
        self._of_claims = of_claims
        self._of_classes = of_classes

    def resource_class(self, name: str) -> alpha_class.ResourceClass | None:
        return self._classes.get(name)

    def claim_parameters(self, namespace: str) -> list[parameters.ResourceClaimParameters]:
        return [each for each in self._of_claims if each.metadata.namespace == namespace]

    def class_parameters(self) -> tuple[parameters.ResourceClassParameters, ...]:
        return self._of_classes


def a_class(**fields: object) -> alpha_class.ResourceClass:
    return msgspec.structs.replace(
        alpha_class.ResourceClass(
            metadata=meta.ObjectMeta(name="cards"), driver_name=DRIVER, structured_parameters=True
        ),
        **fields,
    )


def generated(namespace: str = "n", uid: str = "u") -> parameters.ResourceClaimParameters:
    origin = msgspec.structs.replace(REFERENCE, uid=uid)
    return parameters.ResourceClaimParameters(
        metadata=meta.ObjectMeta(name="generated", namespace=namespace), generated_from=origin
    )


WISH = alpha.ResourceClaimSpec(resource_class_name="cards", parameters_ref=REFERENCE)
DIRECT = references.ResourceClaimParametersReference(
    api_group="resource.k8s.io", kind="ResourceClaimParameters", name="generated"
)


@pytest.mark.parametrize(
    ("objects", "want"),
    [
        pytest.param(Objects(), "resource class cards does not exist", id="class"),
        pytest.param(
            Objects(a_class(structured_parameters=None)),
            f"resource class cards has no structured parameters: a controller of driver {DRIVER} has to allocate the "
            "claim",
            id="another-controller",
        ),
        pytest.param(
            Objects(a_class(), of_claims=(generated(namespace="other"),)),
            "generated claim parameters for CardParameters.dra.example.com n/mine not found",
            id="generated-claim-parameters",
        ),
        pytest.param(
            Objects(a_class(parameters_ref=CLASS_REFERENCE), of_claims=(generated(),)),
            "generated class parameters for CardClassParameters.dra.example.com of-class not found",
            id="generated-class-parameters",
        ),
    ],
)
def test_what_a_claim_waits_for(objects: Objects, want: str) -> None:
    assert resolution.resolve(WISH, "n", objects) == resolution.Waiting(want)


def test_generated_parameters_are_found_by_their_origin() -> None:
    of_class = parameters.ResourceClassParameters(generated_from=CLASS_REFERENCE)
    class_ = a_class(parameters_ref=CLASS_REFERENCE)
    objects = Objects(class_, of_claims=(generated(),), of_classes=(of_class,))
    found = resolution.resolve(WISH, "n", objects)
    assert found == resolution.Resolution(resource_class=class_, of_class=of_class, of_claim=generated())
    direct = msgspec.structs.replace(WISH, parameters_ref=DIRECT)
    assert isinstance(resolution.resolve(direct, "n", objects), resolution.Resolution)
    assert resolution.resolve(direct, "m", objects) == resolution.Waiting("claim parameters m/generated not found")


def resolved(of_claim: parameters.ResourceClaimParameters) -> resolution.Resolution:
    vendor = [{"driverName": DRIVER, "parameters": {"of": "class"}}, {"driverName": "other", "parameters": {}}]
    filter_ = parameters.ResourceFilter(
        driver_name=DRIVER, named_resources=parameters.NamedResourcesFilter(selector="true")
    )
    of_class = parameters.ResourceClassParameters(vendor_parameters=vendor, filters=(filter_,))
    return resolution.Resolution(resource_class=a_class(), of_class=of_class, of_claim=of_claim)


def asking(*selectors: str) -> parameters.ResourceClaimParameters:
    required = tuple(parameters.NamedResourcesRequest(selector=each) for each in selectors)
    model = parameters.NamedResourcesWithAttributesRequest(required=required)
    request = parameters.ResourceRequest(driver_name=DRIVER, named_resources_with_attributes=model)
    return parameters.ResourceClaimParameters(vendor_parameters={"of": "claim"}, requests=(request,))


def test_every_selector_is_a_request_for_a_device() -> None:
    spec = claims.spec_of(resolved(asking("true", 'attributes.bool["ecc"]')))
    shown = [
        [each.cel.expression for each in request.exactly.selectors if each.cel is not None]
        for request in spec.devices.requests
        if request.exactly is not None
    ]
    own = f'device.driver == "{DRIVER}"'
    assert shown == [[own, own], [f'{own} && device.attributes["{DRIVER}"].ecc', own]]
    configuration = [(each.requests, each.opaque.parameters) for each in spec.devices.config if each.opaque]
    both = ("request-0", "request-1")
    assert configuration == [(both, {"of": "class"}), (both, {"of": "claim"})]


def test_a_claim_that_asks_for_nothing_asks_for_no_device() -> None:
    assert claims.spec_of(resolved(parameters.ResourceClaimParameters())).devices.requests == ()


def test_requests_of_another_model_are_refused() -> None:
    unknown = parameters.ResourceClaimParameters(requests=(parameters.ResourceRequest(driver_name=DRIVER),))
    with pytest.raises(errors.InvalidValueError, match="the structured model is not known"):
        requests.needs(unknown, parameters.ResourceClassParameters())


CLAIM = alpha.ResourceClaim(
    metadata=meta.ObjectMeta(
        name="c",
        namespace="n",
        uid="u",
        annotations={"a": "b", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
    ),
    spec=WISH,
)


def test_a_counterpart_says_what_v1_cannot() -> None:
    found = resolved(asking("true"))
    made = counterpart.of(CLAIM, found)
    assert made.metadata.annotations == {"a": "b", counterpart.CLAIM: "u", counterpart.EXCLUSIVE: "true"}
    assert counterpart.stands_for(made, CLAIM)
    assert not counterpart.reason(made)
    waiting = counterpart.waiting(CLAIM, "reasons")
    assert counterpart.reason(waiting) == "reasons"
    assert not counterpart.is_alike(made, waiting)


def test_room_for_users() -> None:
    made = counterpart.of(CLAIM, resolved(asking("true")))
    user = resourceclaim.ResourceClaimConsumerReference(resource="pods", name="p", uid="p")
    used = msgspec.structs.replace(made, status=resourceclaim.ResourceClaimStatus(reserved_for=(user,)))
    assert counterpart.has_room(made, "p")
    assert counterpart.has_room(used, "p")
    assert not counterpart.has_room(used, "q")
    held = resourceclaim.ResourceClaimStatus(reserved_for=counterpart.consumers_with_claim(made, CLAIM))
    assert counterpart.has_room(msgspec.structs.replace(made, status=held), "q")
    plain = resourceclaim.ResourceClaim(status=resourceclaim.ResourceClaimStatus(reserved_for=(user,)))
    assert counterpart.has_room(plain, "q")
