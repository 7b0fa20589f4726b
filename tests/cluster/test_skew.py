"""Version skew: components on a kube-apiserver 1.34 with its default gates, and on 1.37 with only v1beta1."""

import json
import pathlib
import subprocess
from collections.abc import Iterator

import pytest

from tests import patience
from tests.cluster import controlplane, objects, programs
from tests.scenarios import processes, wire

_VERSIONS = {"resource.k8s.io/v1": False, "resource.k8s.io/v1beta2": False, "resource.k8s.io/v1beta1": True}
_PLANES = {
    "1.34-defaults": (programs.OLD_API_SERVER, {}, "v1"),
    "1.34-v1beta1": (programs.OLD_API_SERVER, _VERSIONS, "v1beta1"),
    "1.37-defaults": ("kube-apiserver", {}, "v1"),
    "1.37-v1beta1": ("kube-apiserver", _VERSIONS, "v1beta1"),
}
_CONTROLLERS = "--controllers=*,-node-lifecycle-controller,-taint-eviction-controller"


@pytest.fixture
def skewed(
    request: pytest.FixtureRequest, tmp_path: pathlib.Path
) -> Iterator[tuple[controlplane.ControlPlane, wire.Wire, str]]:
    """Return a control plane, a connection to it, and the version of resource.k8s.io that it has."""
    api_server, apis, version = request.param
    try:
        programs.built(api_server)
    except programs.MissingError as missing:
        pytest.skip(str(missing))
    with (
        controlplane.control_plane(tmp_path, api_server=api_server, gates=(), apis=apis) as plane,
        wire.Wire(plane) as admin,
    ):
        yield plane, admin, version


@pytest.mark.parametrize("skewed", _PLANES.values(), ids=_PLANES.keys(), indirect=True)
def test_claims_are_made_scheduled_and_released(
    skewed: tuple[controlplane.ControlPlane, wire.Wire, str],
) -> None:
    plane, admin, version = skewed
    place = f"/apis/resource.k8s.io/{version}/resourceclaims"
    for document in (objects.device_class(), objects.resource_slice("n1", 2), objects.template("one")):
        objects.create(admin, objects.in_version(document, version))
    objects.create(admin, objects.node("n1"))
    with (
        plane.drachma("scheduler") as scheduler,
        plane.drachma(
            "controllers", "--controllers=*,-node-lifecycle-controller,-taint-eviction-controller"
        ) as controllers,
    ):
        scheduler.wait_for("leads by lease")
        controllers.wait_for("leads by lease")
        objects.create(admin, objects.pod("p", template_name="one"))
        assert objects.wait_for_node(admin, "p") == "n1"
        admin.call("DELETE", f"{objects.PODS}/p", {"gracePeriodSeconds": 0})
        patience.until(lambda: admin.call("GET", place).body["items"], lambda left: not left, what="the claim is gone")
        scheduler.check()
        controllers.check()
    command = [*processes.DRACHMA, "doctor", "--kubeconfig", str(plane.kubeconfig), "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    checks = {each["check"] for each in json.loads(done.stdout)["findings"]}
    assert ("old-api-version" in checks) is (version != "v1"), done.stdout
    assert checks <= {"old-api-version", "kind-not-served"}, done.stdout
