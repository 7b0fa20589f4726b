"""Configurations from their documents."""

from typing import Any

import pytest

from drachma.queueing import configuration, configurationform

_NEWER, _OLDER = configuration.API_VERSIONS


@pytest.mark.parametrize(
    ("api_version", "nulls"),
    [
        pytest.param(_NEWER, {"resources": None}, id="part"),
        pytest.param(_NEWER, {"resources": {"deviceClassMappings": None}}, id="list"),
        pytest.param(_NEWER, {"namespace": None}, id="text"),
        pytest.param(_NEWER, {"featureGates": None}, id="map"),
        pytest.param(_NEWER, {"integrations": {"frameworks": None}}, id="list-with-default"),
        pytest.param(_OLDER, {"waitForPodsReady": None}, id="switched-part"),
    ],
)
def test_null_means_nothing_as_in_upstreams_decoder(api_version: str, nulls: dict[str, Any]) -> None:
    parts: dict[str, Any] = {name: {} for name, part in nulls.items() if part}
    head = {"apiVersion": api_version, "kind": "Configuration"}

    assert configurationform.read(head | nulls) == configurationform.read(head | parts)


def test_null_leaves_the_older_versions_default_of_blocking_admission() -> None:
    document = {
        "apiVersion": _OLDER,
        "kind": "Configuration",
        "waitForPodsReady": {"enable": True, "blockAdmission": None},
    }

    ready = configurationform.read(document).wait_for_pods_ready

    assert ready is not None
    assert ready.block_admission
