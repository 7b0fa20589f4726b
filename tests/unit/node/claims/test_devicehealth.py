"""Health of devices: changes, expiry and limits."""

from types import SimpleNamespace
from typing import Any

from drachma.api import codec
from drachma.api.pod import Pod
from drachma.node.claims import devicehealth
from drachma.node.claims.devicehealth import UNKNOWN, DeviceHealth, DeviceID, Health
from drachma.node.claims.preparedclaims import Device, DriverState, Key, PreparedClaim, PreparedClaims
from drachma.testing import manualclock

GPU = DeviceID("worker", "gpu-0")


def _report(device: str = "gpu-0", *, health: int = 1, message: str = "", seconds: int = 0) -> Any:
    identifier = SimpleNamespace(pool_name="worker", device_name=device)
    return SimpleNamespace(device=identifier, health=health, message=message, health_check_timeout_seconds=seconds)


async def test_a_report_that_is_not_repeated_is_forgotten() -> None:
    clock = manualclock.ManualClock()
    health = DeviceHealth(clock)
    assert health.update("d", [_report(seconds=10)]) == {GPU}
    await clock.advance(9)
    assert health.get("d", GPU) == Health("Healthy")
    assert health.update("d", [_report(seconds=10)]) == set()
    await clock.advance(11)
    assert health.get("d", GPU) == UNKNOWN
    assert health.update("d", []) == {GPU}
    assert health.update("d", []) == set()
    assert health.update("d", [_report(health=2)]) == {GPU}


def test_new_words_are_a_change_and_long_ones_are_cut() -> None:
    health = DeviceHealth(manualclock.ManualClock())
    health.update("d", [_report()])
    assert health.update("d", [_report(message="x" * 2000)]) == {GPU}
    assert health.get("d", GPU).message == "x" * 1021 + "..."


def test_a_driver_that_is_forgotten_says_nothing_about_others() -> None:
    health = DeviceHealth(manualclock.ManualClock())
    health.update("d", [_report()])
    health.update("e", [_report()])
    assert health.forget("d") == {GPU}
    assert health.forget("d") == set()
    assert health.get("d", GPU) == UNKNOWN
    assert health.get("e", GPU) == Health("Healthy")


def test_states_that_do_not_exist_are_unknown() -> None:
    health = DeviceHealth(manualclock.ManualClock())
    health.update("d", [_report(health=7)])
    assert health.get("d", GPU) == UNKNOWN


def test_a_driver_cannot_fill_the_memory() -> None:
    health = DeviceHealth(manualclock.ManualClock())
    health.update("d", [_report(f"gpu-{number}") for number in range(16_385)])
    assert health.get("d", DeviceID("worker", "gpu-16383")) == Health("Healthy")
    assert health.get("d", DeviceID("worker", "gpu-16384")) == UNKNOWN


def test_messages_of_drivers_have_a_gate_of_their_own() -> None:
    class Reports:
        def get(self, driver: str, device: devicehealth.DeviceID) -> devicehealth.Health:
            return devicehealth.Health("Unhealthy", "too hot")

    claims = PreparedClaims(
        [
            PreparedClaim(
                uid="u",
                key=Key("ns", "c"),
                drivers={"d": DriverState((Device(pool_name="p", device_name="x"),))},
            )
        ]
    )
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ns"},
        "spec": {
            "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "r"}]}}],
            "resourceClaims": [{"name": "r", "resourceClaimName": "c"}],
        },
    }
    pod = codec.decode(document)
    assert isinstance(pod, Pod)
    (container,) = pod.spec.containers
    (shown,) = devicehealth.statuses(claims, Reports(), pod, container)
    assert shown["resources"] == [{"resourceID": "d/p/x", "health": "Unhealthy", "message": "too hot"}]
    (shown,) = devicehealth.statuses(claims, Reports(), pod, container, has_messages=False)
    assert shown["resources"] == [{"resourceID": "d/p/x", "health": "Unhealthy"}]
