"""Parameters of classes and claims in a driver's type: which device gets which, and what is refused."""

from typing import Any, Literal

import msgspec
import pytest

from drachma import errors
from drachma.api import codec, resourceclaim
from drachma.driver import AdminOnly, Config, ConfigSource, opaqueconfig


class GpuConfig(Config):
    kind: Literal["GpuConfig"] = "GpuConfig"
    sharing: str = "exclusive"
    time_slice: int = 0


class Setup(msgspec.Struct, frozen=True):
    script: AdminOnly[str] = ""
    verbose: bool = False


class PrivilegedConfig(Config):
    sharing: str = "exclusive"
    init_command: AdminOnly[tuple[str, ...]] = ()
    setup: Setup = Setup()
    steps: tuple[Setup, ...] = ()


def _claim(*configs: dict[str, Any], requests: tuple[str, ...] = ("gpu",)) -> resourceclaim.ResourceClaim:
    claim = codec.decode(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "c", "namespace": "ns", "uid": "u"},
            "spec": {},
            "status": {
                "allocation": {
                    "devices": {
                        "results": [
                            {"request": request, "driver": "d.example.com", "pool": "p", "device": f"d-{number}"}
                            for number, request in enumerate(requests)
                        ]
                        + [{"request": "other", "driver": "other.example.com", "pool": "p", "device": "x"}],
                        "config": list(configs),
                    }
                }
            },
        }
    )
    assert isinstance(claim, resourceclaim.ResourceClaim)
    return claim


def _config(
    parameters: Any, *, source: str = "FromClaim", driver: str = "d.example.com", **more: Any
) -> dict[str, Any]:
    return {"source": source, "opaque": {"driver": driver, "parameters": parameters}, **more}


def _sharing(claim: resourceclaim.ResourceClaim) -> list[str]:
    given = opaqueconfig.read(claim, driver="d.example.com", config_type=GpuConfig)
    return [device.config.sharing for device in given.devices]


def test_only_devices_of_the_driver_count() -> None:
    given = opaqueconfig.read(_claim(), driver="d.example.com", config_type=None)
    assert [(device.request, device.pool, device.name) for device in given.devices] == [("gpu", "p", "d-0")]
    assert given.devices[0].config is None


@pytest.mark.parametrize(
    ("configs", "requests", "want"),
    [
        pytest.param([], ("gpu",), ["exclusive"], id="defaults-of-the-type"),
        pytest.param([_config({"sharing": "mps"})], ("gpu",), ["mps"], id="for-all-requests"),
        pytest.param(
            [_config({"sharing": "claim"}), _config({"sharing": "class"}, source="FromClass")],
            ("gpu",),
            ["claim"],
            id="the-claim-after-the-class-whatever-their-order",
        ),
        pytest.param(
            [_config({"sharing": "one"}), _config({"sharing": "two"})], ("gpu",), ["two"], id="the-last-one-counts"
        ),
        pytest.param([_config({"sharing": "a"}, requests=["a"])], ("a", "b"), ["a", "exclusive"], id="for-one-request"),
        pytest.param(
            [_config({"sharing": "a"}, requests=["a"])], ("a/big", "b"), ["a", "exclusive"], id="with-its-subrequests"
        ),
        pytest.param(
            [_config({"sharing": "s"}, requests=["a/big"])],
            ("a/big", "a/small"),
            ["s", "exclusive"],
            id="for-one-subrequest",
        ),
        pytest.param(
            [_config({"anything": True}, driver="other.example.com")], ("gpu",), ["exclusive"], id="of-another-driver"
        ),
    ],
)
def test_which_parameters_a_device_gets(
    configs: list[dict[str, Any]], requests: tuple[str, ...], want: list[str]
) -> None:
    assert _sharing(_claim(*configs, requests=requests)) == want


@pytest.mark.parametrize(
    ("config", "config_type", "want"),
    [
        pytest.param(
            _config({"sharng": "x"}),
            GpuConfig,
            "claim ns/c, config #0 (FromClaim): parameters: Object contains unknown field `sharng`",
            id="an-unknown-field",
        ),
        pytest.param(
            _config({"timeSlice": "long"}, source="FromClass"),
            GpuConfig,
            "claim ns/c, config #0 (FromClass): parameters: Expected `int`, got `str` - at `$.timeSlice`",
            id="a-value-of-another-type",
        ),
        pytest.param(
            _config({"kind": "NicConfig"}),
            GpuConfig,
            "claim ns/c, config #0 (FromClaim): parameters: Invalid enum value 'NicConfig' - at `$.kind`",
            id="another-kind",
        ),
        pytest.param(
            _config({}),
            None,
            "claim ns/c, config #0 (FromClaim): driver d.example.com takes no parameters",
            id="a-driver-without-parameters",
        ),
    ],
)
def test_what_cannot_be_read_is_an_error_of_the_claim(config: dict[str, Any], config_type: Any, want: str) -> None:
    with pytest.raises(errors.DriverError) as caught:
        opaqueconfig.read(_claim(config), driver="d.example.com", config_type=config_type)
    assert str(caught.value) == want


def test_a_driver_is_told_who_wrote_parameters() -> None:
    claim = _claim(_config({"sharing": "claim"}), _config({"sharing": "class"}, source="FromClass"))
    (device,) = opaqueconfig.read(claim, driver="d.example.com", config_type=GpuConfig).devices
    assert [(each.source, each.config.sharing) for each in device.parameters] == [
        (ConfigSource.CLASS, "class"),
        (ConfigSource.CLAIM, "claim"),
    ]
    assert [each.sharing for each in device.class_configs] == ["class"]
    assert [each.sharing for each in device.claim_configs] == ["claim"]
    assert [each.sharing for each in device.configs] == ["class", "claim"]


@pytest.mark.parametrize(
    ("parameters", "want"),
    [
        pytest.param({"initCommand": ["rm"]}, "initCommand", id="a-field"),
        pytest.param({"setup": {"script": "x"}}, "setup.script", id="inside-another"),
        pytest.param({"steps": [{}, {"script": ""}]}, "steps[1].script", id="in-a-list"),
    ],
)
def test_a_claim_may_not_set_what_is_for_administrators(parameters: dict[str, Any], want: str) -> None:
    with pytest.raises(errors.DriverError) as caught:
        opaqueconfig.read(_claim(_config(parameters)), driver="d.example.com", config_type=PrivilegedConfig)
    assert str(caught.value) == (
        f"claim ns/c, config #0 (FromClaim): parameters: {want}: only a DeviceClass may set this"
    )


def test_a_class_sets_it_and_a_claim_changes_the_rest() -> None:
    of_class = {"initCommand": ["setup"], "sharing": "class", "setup": {"script": "s"}}
    claim = _claim(_config(of_class, source="FromClass"), _config({"sharing": "claim", "setup": {"verbose": True}}))
    (device,) = opaqueconfig.read(claim, driver="d.example.com", config_type=PrivilegedConfig).devices
    assert (device.config.init_command, device.config.sharing) == (("setup",), "claim")
    assert (device.config.setup.script, device.config.setup.verbose) == ("s", True)


def test_a_source_of_a_later_version_counts_as_a_user() -> None:
    with pytest.raises(errors.DriverError, match="only a DeviceClass may set this"):
        opaqueconfig.read(
            _claim(_config({"initCommand": []}, source="FromElsewhere")),
            driver="d.example.com",
            config_type=PrivilegedConfig,
        )
