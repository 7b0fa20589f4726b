"""Health of devices: changes, expiry and limits."""

from types import SimpleNamespace
from typing import Any

from drachma.node.claims.devicehealth import UNKNOWN, DeviceHealth, DeviceID, Health
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
