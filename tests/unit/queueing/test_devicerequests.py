"""What devices are charged with beyond Kueue's rules; those are held by its recorded answers."""

from drachma.queueing import devicerequests
from drachma.queueing.configuration import DeviceClassMapping
from drachma.queueing.devicemappings import DeviceMappings
from drachma.queueing.deviceobjects import DeviceObjects
from drachma.queueing.gates import DEFAULT
from drachma.queueing.kinds import workload
from drachma.queueing.queueingpolicy import AS_KUEUE, AdminAccess, QueueingPolicy, Sidecars
from tests.unit.queueing import devicecases

_MAPPINGS = DeviceMappings.of(
    [
        DeviceClassMapping(name="large-gpus", device_class_names=("large",)),
        DeviceClassMapping(name="small-gpus", device_class_names=("small",)),
    ]
)


def _charges(
    of: workload.Workload, objects: DeviceObjects, policy: QueueingPolicy, mappings: DeviceMappings = _MAPPINGS
) -> dict[str, str] | str:
    """What a pod of the only pod set is charged with; or why that cannot be said."""
    counted = devicerequests.count(of, objects, mappings, gates=DEFAULT, policy=policy)
    if isinstance(counted, devicerequests.Refusal):
        return counted.message
    return {name: str(amount) for name, amount in counted.charges.get("main", {}).items()}


def test_watching_devices_is_free_even_if_there_are_none() -> None:
    selector = {"cel": {"expression": 'device.driver == "nobody.example.com"'}}
    watching = {"name": "all", "exactly": {"deviceClassName": "large", "adminAccess": True, "selectors": [selector]}}
    objects = devicecases.objects(devicecases.template("watch", watching), devicecases.device_class("large"))
    refused = _charges(devicecases.job("watch"), objects, AS_KUEUE)
    assert "insufficient matching devices" in refused
    assert _charges(devicecases.job("watch"), objects, QueueingPolicy(admin_access=AdminAccess.FREE)) == {}


def test_sidecars_are_charged_as_they_run() -> None:
    def container(name: str, gpus: int, **more: str) -> dict[str, object]:
        return {"name": name, "resources": {"requests": {"example.com/gpu": str(gpus)}}, **more}

    of = devicecases.job(
        init_containers=[container("setup", 2), container("proxy", 1, restartPolicy="Always"), container("load", 3)],
        containers=[container("train", 2)],
    )
    objects = devicecases.objects(devicecases.device_class("large", extended="example.com/gpu"))
    assert _charges(of, objects, AS_KUEUE) == {"large-gpus": "3"}
    assert _charges(of, objects, QueueingPolicy(sidecars=Sidecars.CHARGED)) == {"large-gpus": "4"}
