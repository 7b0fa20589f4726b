"""Charges for devices beyond Kueue's rules, which its recorded answers cover."""

import re

import pytest

from drachma.api import meta, resourceclaim
from drachma.api.devices import CELDeviceSelector, DeviceSelector
from drachma.queueing.configuration.configuration import CounterSource, DeviceClassMapping, Source
from drachma.queueing.configuration.gates import DEFAULT
from drachma.queueing.configuration.queueingpolicy import (
    AS_KUEUE,
    AdminAccess,
    AllDevices,
    FirstAvailable,
    NodeAllocatable,
    QueueingPolicy,
    SelectedDevices,
    Sidecars,
    Templates,
)
from drachma.queueing.devices import requests as devicerequests
from drachma.queueing.devices.mappings import DeviceMappings
from drachma.queueing.devices.objects import DeviceObjects
from drachma.queueing.kinds import workload
from tests.unit.queueing.devices import devicecases

_MAPPINGS = DeviceMappings.of(
    [
        DeviceClassMapping(name="large-gpus", device_class_names=("large",)),
        DeviceClassMapping(name="small-gpus", device_class_names=("small",)),
    ]
)


def _charges(
    wl: workload.Workload, objects: DeviceObjects, policy: QueueingPolicy, mappings: DeviceMappings = _MAPPINGS
) -> dict[str, str] | str:
    """Return the charge of a pod of the only pod set, or the message of the refusal."""
    charges = devicerequests.count(wl, objects, mappings, gates=DEFAULT, policy=policy)
    if isinstance(charges, devicerequests.Refusal):
        return charges.message
    return {name: str(amount) for name, amount in charges.charges.get("main", {}).items()}


def test_watching_devices_is_free_even_if_there_are_none() -> None:
    selector = {"cel": {"expression": 'device.driver == "nobody.example.com"'}}
    watching = {"name": "all", "exactly": {"deviceClassName": "large", "adminAccess": True, "selectors": [selector]}}
    objects = devicecases.objects(devicecases.template("watch", watching), devicecases.device_class("large"))
    message = _charges(devicecases.job("watch"), objects, AS_KUEUE)
    assert "insufficient matching devices" in message
    assert _charges(devicecases.job("watch"), objects, QueueingPolicy(admin_access=AdminAccess.FREE)) == {}


def test_sidecars_are_charged_as_they_run() -> None:
    def container(name: str, gpus: int, **more: str) -> dict[str, object]:
        return {"name": name, "resources": {"requests": {"example.com/gpu": str(gpus)}}, **more}

    wl = devicecases.job(
        init_containers=[container("setup", 2), container("proxy", 1, restartPolicy="Always"), container("load", 3)],
        containers=[container("train", 2)],
    )
    objects = devicecases.objects(devicecases.device_class("large", extended="example.com/gpu"))
    assert _charges(wl, objects, AS_KUEUE) == {"large-gpus": "3"}
    assert _charges(wl, objects, QueueingPolicy(sidecars=Sidecars.CHARGED)) == {"large-gpus": "4"}


_LIST = {
    "name": "gpu",
    "firstAvailable": [
        {"name": "large", "deviceClassName": "large"},
        {"name": "small", "deviceClassName": "small", "count": 2},
        {"name": "smaller", "deviceClassName": "small", "count": 3},
    ],
}
_ALL = {"name": "gpus", "exactly": {"deviceClassName": "small", "allocationMode": "All"}}
_CLASSES = (devicecases.device_class("large", model="large"), devicecases.device_class("small", model="small"))


def _pool(node: str, small: int, large: int = 0) -> meta.Object:
    devices = [devicecases.device(f"small-{number}", "small") for number in range(small)]
    devices += [devicecases.device(f"large-{number}", "large") for number in range(large)]
    return devicecases.device_slice(node, devices)


def test_alternatives_are_charged_at_the_most_of_each_resource() -> None:
    objects = devicecases.objects(devicecases.template("any", _LIST), *_CLASSES)
    assert "FirstAvailable device selection is not supported" in _charges(devicecases.job("any"), objects, AS_KUEUE)
    policy = QueueingPolicy(first_available=FirstAvailable.ENVELOPE)
    assert _charges(devicecases.job("any"), objects, policy) == {"large-gpus": "1", "small-gpus": "3"}


def test_an_alternative_that_is_not_mapped_is_refused() -> None:
    objects = devicecases.objects(devicecases.template("any", _LIST), *_CLASSES)
    mappings = DeviceMappings.of([DeviceClassMapping(name="large-gpus", device_class_names=("large",))])
    policy = QueueingPolicy(first_available=FirstAvailable.ENVELOPE)
    message = _charges(devicecases.job("any"), objects, policy, mappings)
    assert "DeviceClass small is not mapped in DRA configuration for podset main" in message


@pytest.mark.parametrize(
    ("slices", "want"),
    [
        pytest.param([_pool("a", 2), _pool("b", 4, 1)], {"small-gpus": "4"}, id="largest-node"),
        pytest.param([_pool("a", 2), _pool("b", 1), _pool("", 3)], {"small-gpus": "5"}, id="with-what-all-nodes-reach"),
        pytest.param([_pool("", 3)], {"small-gpus": "3"}, id="only-what-all-nodes-reach"),
        pytest.param([_pool("a", 40)], {"small-gpus": "32"}, id="no-more-than-a-claim-can-hold"),
    ],
)
def test_all_devices_are_charged_at_the_worst_node(slices: list[meta.Object], want: dict[str, str]) -> None:
    objects = devicecases.objects(devicecases.template("all", _ALL), *_CLASSES, *slices)
    assert "AllocationMode 'All' is not supported" in _charges(devicecases.job("all"), objects, AS_KUEUE)
    assert _charges(devicecases.job("all"), objects, QueueingPolicy(all_devices=AllDevices.WORST_CASE)) == want


def test_all_of_no_devices_is_waited_for() -> None:
    objects = devicecases.objects(devicecases.template("all", _ALL), *_CLASSES, _pool("a", 0, 1))
    policy = QueueingPolicy(all_devices=AllDevices.WORST_CASE)
    refusal = devicerequests.count(devicecases.job("all"), objects, _MAPPINGS, gates=DEFAULT, policy=policy)
    assert isinstance(refusal, devicerequests.Refusal)
    assert refusal.is_retried
    assert "no device matches whose charge could be bounded, DeviceClass small" in refusal.message


def test_counters_of_alternatives_are_bounded_by_the_largest_device() -> None:
    def partition(name: str, model: str, memory: str) -> dict[str, object]:
        consumes = [{"counterSet": "card", "counters": {"memory": {"value": memory}}}]
        return devicecases.device(name, model, consumesCounters=consumes)

    devices = [
        partition("half", "large", "40Gi"),
        partition("whole", "large", "80Gi"),
        partition("tenth", "small", "8Gi"),
    ]
    objects = devicecases.objects(devicecases.template("any", _LIST), *_CLASSES, devicecases.device_slice("a", devices))
    source = CounterSource(
        name="memory",
        driver="gpus.example.com",
        device_selector=DeviceSelector(cel=CELDeviceSelector(expression="true")),
    )
    mappings = DeviceMappings.of(
        [
            DeviceClassMapping(
                name="gpu-memory", device_class_names=("large", "small"), sources=(Source(counter=source),)
            )
        ]
    )
    policy = QueueingPolicy(first_available=FirstAvailable.ENVELOPE)
    assert _charges(devicecases.job("any"), objects, policy, mappings) == {"gpu-memory": "80Gi"}


def test_what_devices_mean_for_their_node_is_charged_at_the_most() -> None:
    def card(name: str, cpu: str) -> dict[str, object]:
        overhead = {"perPod": "100Mi", "perContainer": "10Mi"}
        meaning = {"cpu": {"mapping": {"deviceMultiplier": cpu}}, "memory": {"overhead": overhead}}
        return devicecases.device(name, "large", nodeAllocatableResources=meaning)

    two = {"name": "gpu", "exactly": {"deviceClassName": "large", "count": 2}}
    objects = devicecases.objects(
        devicecases.template("two", two),
        *_CLASSES,
        devicecases.device_slice("a", [card("slow", "2"), card("fast", "4")]),
    )
    policy = QueueingPolicy(node_allocatable=NodeAllocatable.CHARGED)
    assert _charges(devicecases.job("two"), objects, AS_KUEUE) == {"large-gpus": "2"}
    charged = {"large-gpus": "2", "cpu": "8", "memory": "220Mi"}
    assert _charges(devicecases.job("two"), objects, policy) == charged


def _selecting(*classes: str) -> QueueingPolicy:
    """Return a policy with a quota for devices whose name in an attribute ends with 1."""
    expression = 'device.attributes["gpus.example.com"].serial.endsWith("1")'
    selection = SelectedDevices(
        name="ones",
        device_class_names=classes,
        device_selector=DeviceSelector(cel=CELDeviceSelector(expression=expression)),
    )
    return QueueingPolicy(selected_devices=(selection,), first_available=FirstAvailable.ENVELOPE)


def _serial(name: str, model: str) -> dict[str, object]:
    return devicecases.device(name, attributes={"model": {"string": model}, "serial": {"string": name}})


_TWO_SMALL = {"name": "gpu", "exactly": {"deviceClassName": "small", "count": 2}}


@pytest.mark.parametrize(
    ("request_", "devices", "want"),
    [
        pytest.param(_TWO_SMALL, ["small-0", "small-1"], {"small-gpus": "2", "ones": "2"}, id="some-are-selected"),
        pytest.param(_TWO_SMALL, ["small-0", "large-1"], {"small-gpus": "2"}, id="none-that-it-can-get"),
        pytest.param(_TWO_SMALL, [], {"small-gpus": "2", "ones": "2"}, id="none-known-yet"),
        pytest.param(
            {
                "name": "gpu",
                "exactly": {
                    "deviceClassName": "small",
                    "selectors": [{"cel": {"expression": 'device.attributes["gpus.example.com"].serial == "small-0"'}}],
                },
            },
            ["small-0", "small-1"],
            {"small-gpus": "1"},
            id="the-request-excludes-them",
        ),
        pytest.param(
            _LIST, ["small-1", "large-0"], {"large-gpus": "1", "small-gpus": "3", "ones": "3"}, id="alternatives"
        ),
        pytest.param(
            {"name": "gpu", "exactly": {"deviceClassName": "small", "adminAccess": True}}, ["small-1"], {}, id="admin"
        ),
    ],
)
def test_selected_devices_are_charged_as_if_all_were_selected(
    request_: dict[str, object], devices: list[str], want: dict[str, str]
) -> None:
    published = [_serial(name, name.partition("-")[0]) for name in devices]
    objects = devicecases.objects(
        devicecases.template("t", request_), *_CLASSES, devicecases.device_slice("a", published)
    )
    assert _charges(devicecases.job("t"), objects, _selecting("small", "large")) == want


def test_extended_resources_are_charged_for_selected_devices() -> None:
    container = {"name": "c", "resources": {"requests": {"example.com/gpu": "3"}}}
    for serial, want in (("small-1", {"small-gpus": "3", "ones": "3"}), ("small-0", {"small-gpus": "3"})):
        objects = devicecases.objects(
            devicecases.device_class("small", extended="example.com/gpu"),
            devicecases.device_slice("a", [_serial(serial, "small")]),
        )
        assert _charges(devicecases.job(containers=[container]), objects, _selecting("small")) == want


def test_a_device_that_cannot_be_judged_is_named() -> None:
    objects = devicecases.objects(devicecases.template("t", _TWO_SMALL), *_CLASSES, _pool("a", small=2))
    message = _charges(devicecases.job("t"), objects, _selecting("small"))
    assert "CEL evaluation error in selectedDevices ones for device small-0: no such key: serial" in message


def test_problems_of_extended_resources_have_a_fixed_order() -> None:
    names = [f"example.com/gpu-{letter}" for letter in "abcdefgh"]
    container = {"name": "c", "resources": {"requests": dict.fromkeys(names, "500m")}}
    classes = [devicecases.device_class(f"class-{name[-1]}", extended=name) for name in names]
    objects = devicecases.objects(*classes)
    message = _charges(devicecases.job(containers=[container]), objects, AS_KUEUE)
    assert isinstance(message, str)
    assert re.findall(r"requests\.(example\.com/gpu-.)", message) == names


def test_templates_are_pinned_by_uid() -> None:
    one = {"name": "gpu", "exactly": {"deviceClassName": "large"}}
    objects = devicecases.objects(devicecases.template("one", one, uid="first"), *_CLASSES)
    charges = devicerequests.count(
        devicecases.job("one"), objects, _MAPPINGS, gates=DEFAULT, policy=QueueingPolicy(templates=Templates.PINNED)
    )
    assert isinstance(charges, devicerequests.DeviceRequests)
    assert charges.templates == {"one": "first"}


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        pytest.param("!device.allowMultipleAllocations", {"large-gpus": "1"}, id="none-can-be-shared"),
        pytest.param("device.allowMultipleAllocations", "0 device(s) match in the cluster", id="sharing-is-not-seen"),
        pytest.param('["a"].includes("a")', {"large-gpus": "1"}, id="functions-of-gates-that-are-off"),
        pytest.param(
            'device.attributes["gpus.example.com"].tags.exists(tag, tag == "a")',
            "expression of type 'any' cannot be range of a comprehension",
            id="attributes-are-no-lists",
        ),
    ],
)
def test_selectors_are_read_as_stored_ones_of_kueues_libraries(expression: str, want: dict[str, str] | str) -> None:
    request = {
        "name": "gpu",
        "exactly": {"deviceClassName": "large", "selectors": [{"cel": {"expression": expression}}]},
    }
    gpu = devicecases.device("gpu", allowMultipleAllocations=True)
    objects = devicecases.objects(
        devicecases.template("gpu", request),
        devicecases.device_class("large"),
        devicecases.device_slice("node", [gpu]),
    )

    charges = _charges(devicecases.job("gpu"), objects, AS_KUEUE)

    assert want in charges if isinstance(want, str) else charges == want


def test_a_device_with_a_list_for_an_attribute_cannot_be_judged() -> None:
    selector = {"cel": {"expression": "device.driver == 'gpus.example.com'"}}
    request = {"name": "gpu", "exactly": {"deviceClassName": "large", "selectors": [selector]}}
    gpu = {"name": "gpu", "attributes": {"tags": {"strings": ["a"]}}}
    objects = devicecases.objects(
        devicecases.template("gpu", request),
        devicecases.device_class("large"),
        devicecases.device_slice("node", [gpu]),
    )

    assert "attribute tags: unsupported attribute value" in _charges(devicecases.job("gpu"), objects, AS_KUEUE)


def test_own_claims_next_to_a_shared_one_are_settled() -> None:
    """A pod's use has all of its claims, so that all must be in the agreement."""
    request = {"name": "gpu", "exactly": {"deviceClassName": "small"}}
    objects = devicecases.objects(devicecases.template("own", request), *_CLASSES)

    class Claims:
        def get(self, namespace: str, name: str) -> resourceclaim.ResourceClaim:
            shared = devicecases.claim(name, request)
            assert isinstance(shared, resourceclaim.ResourceClaim)
            return shared

    devices = devicerequests.count(
        devicecases.job("own", named=["shared"]), objects, _MAPPINGS, gates=DEFAULT, claims=Claims()
    )
    assert isinstance(devices, devicerequests.DeviceRequests)
    assert {name: dict(charges) for name, charges in devices.settled.items()} == devices.charges
