"""Rules about registration."""

from __future__ import annotations

import contextlib
import pathlib
from typing import Final

from drachma.driver.conformance.check import Check, FailureError
from drachma.driver.conformance.stage import CallError, Stage
from drachma.validation import formats
from drachma.validation.path import Path


async def _registration(stage: Stage) -> None:
    info = stage.info
    if info.type != "DRAPlugin":
        raise FailureError(f"GetInfo says type {info.type!r}")
    for problem in formats.driver_name(info.name, Path("name")):
        raise FailureError(f"GetInfo says name {info.name!r}: {problem.body}")
    if not stage.dra_services():
        raise FailureError(f"GetInfo says versions {list(info.versions)}, and none of them is one of DRA")
    if not pathlib.Path(info.endpoint).is_absolute():
        raise FailureError(f"GetInfo says endpoint {info.endpoint!r}, which is no absolute path")
    try:
        await stage.notify(is_registered=True)
    except CallError as error:
        raise FailureError(f"NotifyRegistrationStatus(registered): {error}") from error


async def _refused_registration(stage: Stage) -> None:
    with contextlib.suppress(CallError):
        await stage.notify(is_registered=False, error="drachma driver check tries a refusal")
    await stage.register()
    await stage.notify(is_registered=True)


CHECKS: Final = (
    Check(
        "registration",
        "GetInfo tells type, name, endpoint and versions; the answer to it is taken",
        "kubelet plugin registration",
        _registration,
    ),
    Check(
        "registration-refused",
        "a driver outlives that a node agent refuses it",
        "kubelet plugin registration",
        _refused_registration,
    ),
)
