"""API versions that are switched off: they are not served, and everything else is unchanged."""

import pytest

from drachma import errors
from drachma.api import deviceclass, meta
from drachma.process import embedded
from drachma.server.surface import runtimeconfig
from drachma.server.wire import app
from drachma.store import memory


@pytest.mark.parametrize(
    ("text", "served"),
    [
        pytest.param("", {"v1", "v1beta2", "v1beta1", "v1alpha3"}, id="everything"),
        pytest.param("api/beta=false,api/alpha=false", {"v1"}, id="stages"),
        pytest.param("resource.k8s.io/v1beta1=false", {"v1", "v1beta2", "v1alpha3"}, id="one-version"),
        pytest.param("api/beta=false,resource.k8s.io/v1beta1=true", {"v1", "v1beta1", "v1alpha3"}, id="exception"),
        pytest.param("api/all=false,api/ga=true", {"v1"}, id="all-but-stable"),
    ],
)
def test_served_versions(text: str, served: set[str]) -> None:
    config = runtimeconfig.RuntimeConfig.parse(text)
    versions = ("v1", "v1beta2", "v1beta1", "v1alpha3")
    assert {version for version in versions if config.serves("resource.k8s.io", version)} == served


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("resource.k8s.io/v1=maybe", "expected true or false", id="no-switch"),
        pytest.param("beta=false", "expected group/version, or api/STAGE", id="no-version"),
        pytest.param("v1=false", "the core API v1 cannot be switched off", id="core"),
        pytest.param("api/all=false", "the core API v1 cannot be switched off", id="core-with-all"),
    ],
)
def test_refused(text: str, problem: str) -> None:
    with pytest.raises(errors.InvalidValueError, match=problem):
        runtimeconfig.RuntimeConfig.parse(text)


async def test_the_version_in_which_objects_are_stored_stays() -> None:
    config = runtimeconfig.RuntimeConfig.parse("resource.k8s.io/v1=false")
    with pytest.raises(errors.InvalidValueError, match="cannot be switched off while"):
        async with embedded.server(memory.MemoryStore(), additions=app.Additions(runtime_config=config)):
            pass


async def test_a_server_without_betas() -> None:
    """As Kubernetes 1.37 by default: v1 alone."""
    config = runtimeconfig.RuntimeConfig.parse("api/beta=false,api/alpha=false")
    async with embedded.server(memory.MemoryStore(), additions=app.Additions(runtime_config=config)) as server:
        surface = server.application.dispatcher.surface
        assert surface.find("resource.k8s.io", "v1", plural="deviceclasses") is not None
        assert surface.find("resource.k8s.io", "v1beta1", plural="deviceclasses") is None
        assert b"resource.k8s.io/v1beta1" not in surface.openapi_index()
        await server.client.create(deviceclass.DeviceClass(metadata=meta.ObjectMeta(name="gpu")))
        assert (await server.client.get(deviceclass.DeviceClass, "gpu")).metadata.name == "gpu"
        [classes] = [each for each in await server.client.resources() if each.plural == "deviceclasses"]
        assert classes.versions == ("v1",)
