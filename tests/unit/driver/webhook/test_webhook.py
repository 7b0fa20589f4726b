"""The webhook of a driver: its answers, and the configuration that has an API server call it."""

import asyncio
import base64
import contextlib
import datetime as dt
import pathlib
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from drachma import driver, errors
from drachma.api import deviceclass, meta, resourceclaim
from drachma.client import Client, target
from drachma.driver.webhook import reviews, server, webhookmanifests
from drachma.process import embedded
from drachma.store import memory
from drachma.testing.manualclock import ManualClock

NAME = "lamp.example.com"
CONFIGURATIONS = target.Target(
    group="admissionregistration.k8s.io",
    versions=("v1",),
    plural="validatingwebhookconfigurations",
    kind="ValidatingWebhookConfiguration",
    namespaced=False,
    model=meta.Object,
)


class LampConfig(driver.Config):
    colour: str = "red"
    init_command: driver.AdminOnly[tuple[str, ...]] = ()


class Lamps(driver.Driver):
    name = NAME
    config = LampConfig


def _config(parameters: Any, *, name: str = NAME) -> dict[str, Any]:
    return {"opaque": {"driver": name, "parameters": parameters}}


def _claim(*config: dict[str, Any]) -> dict[str, Any]:
    request = {"name": "r", "exactly": {"deviceClassName": "c"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "default"},
        "spec": {"devices": {"requests": [request], "config": list(config)}},
    }


def _template(*config: dict[str, Any]) -> dict[str, Any]:
    spec = _claim(*config)["spec"]
    return {**_claim(), "kind": "ResourceClaimTemplate", "spec": {"spec": spec}}


def _class(*config: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "c"},
        "spec": {"config": list(config)},
    }


def _problem(document: dict[str, Any], old: dict[str, Any] | None = None) -> str:
    request = {"uid": "u", "operation": "UPDATE" if old else "CREATE", "object": document, "oldObject": old}
    review = reviews.answer(Lamps, {"apiVersion": reviews.API_VERSION, "kind": "AdmissionReview", "request": request})
    response = review["response"]
    assert response["uid"] == "u"
    assert response["allowed"] is ("status" not in response)
    return str(response.get("status", {}).get("message", ""))


@pytest.mark.parametrize(
    ("document", "want"),
    [
        pytest.param(_claim(), "", id="no-parameters"),
        pytest.param(_claim(_config({"colour": "blue"})), "", id="good"),
        pytest.param(_claim(_config({"color": "blue"}, name="other.example.com")), "", id="of-another-driver"),
        pytest.param(
            _claim(_config({}), _config({"color": "blue"})),
            "spec.devices.config[1].opaque.parameters: Object contains unknown field `color`",
            id="a-claim",
        ),
        pytest.param(
            _template(_config({"colour": 3})),
            "spec.spec.devices.config[0].opaque.parameters: Expected `str`, got `int` - at `$.colour`",
            id="a-template",
        ),
        pytest.param(
            _claim(_config({"initCommand": ["rm"]})),
            "spec.devices.config[0].opaque.parameters: initCommand: only a DeviceClass may set this",
            id="for-administrators",
        ),
        pytest.param(_class(_config({"initCommand": ["setup"]})), "", id="an-administrator"),
        pytest.param(
            _class(_config({"initCommand": "setup"})),
            "spec.config[0].opaque.parameters: Expected `array`, got `str` - at `$.initCommand`",
            id="a-class",
        ),
    ],
)
def test_answers(document: dict[str, Any], want: str) -> None:
    assert _problem(document) == want


def test_what_an_update_leaves_alone_is_not_checked_again() -> None:
    old = _class(_config({"color": "blue"}))
    assert _problem({**old, "metadata": {"name": "c", "labels": {"a": "b"}}}, old) == ""
    assert _problem(_class(_config({"color": "blue"}), _config({"color": "red"})), old).startswith("spec.config[1]")


@pytest.mark.parametrize("review", [None, {}, {"apiVersion": reviews.API_VERSION, "request": {"object": {}}}])
def test_what_is_no_review_is_refused(review: Any) -> None:
    with pytest.raises(errors.DecodeError):
        reviews.answer(Lamps, review)


def test_manifests() -> None:
    settings = webhookmanifests.Settings(image="lamps:1", namespace="lamps")
    documents = webhookmanifests.documents(Lamps, settings, now=dt.datetime.now(dt.UTC))
    assert [each["kind"] for each in documents] == [
        "Secret",
        "ServiceAccount",
        "Service",
        "Deployment",
        "ValidatingWebhookConfiguration",
    ]
    assert documents[-1]["webhooks"][0]["clientConfig"]["service"]["name"] == "lamp-example-com-webhook"


def test_a_driver_without_parameters_has_no_webhook() -> None:
    class Plain(driver.Driver):
        name = NAME

    with pytest.raises(errors.DriverError, match="takes no parameters"):
        webhookmanifests.documents(
            Plain, webhookmanifests.Settings(image="i", namespace="n"), now=dt.datetime.now(dt.UTC)
        )


@contextlib.asynccontextmanager
async def _cluster(folder: pathlib.Path) -> AsyncIterator[Client]:
    """An API server that calls the webhook, which serves with the certificate of its manifests."""
    opened = socket.create_server(("127.0.0.1", 0))
    url = f"https://127.0.0.1:{opened.getsockname()[1]}"
    settings = webhookmanifests.Settings(image="i", namespace="n", url=url)
    secret, configuration = webhookmanifests.documents(Lamps, settings, now=dt.datetime.now(dt.UTC))
    for name, content in secret["data"].items():
        (folder / name).write_bytes(base64.b64decode(content))
    serving = asyncio.create_task(server.serve(Lamps, opened, certificates=folder, clock=ManualClock()))
    try:
        async with embedded.server(memory.MemoryStore()) as apiserver:
            await apiserver.client.create_document(CONFIGURATIONS, configuration)
            yield apiserver.client
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


async def test_an_api_server_asks_it(tmp_path: pathlib.Path) -> None:
    async with _cluster(tmp_path) as client:
        await client.create_document(deviceclass.DeviceClass, _class(_config({"initCommand": ["setup"]})))
        with pytest.raises(errors.RefusedError, match="initCommand: only a DeviceClass may set this"):
            await client.create_document(resourceclaim.ResourceClaim, _claim(_config({"initCommand": ["rm"]})))
        await client.create_document(resourceclaim.ResourceClaim, _claim(_config({"colour": "blue"})))
