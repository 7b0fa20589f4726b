"""Version skew: components on kube-apiserver 1.34 and 1.37 with default gates, and on a server without devices.

Both serve v1. An operator can turn it off in 1.34, so that v1beta2 or v1beta1 is the newest version.
"""

import copy
import json
import pathlib
import subprocess
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests import patience, ports
from tests.cluster import controlplane, objects, programs, queues
from tests.scenarios import processes, wire

_CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"
_CONTROLLERS = "--controllers=*,-node-lifecycle-controller,-taint-eviction-controller"


def _doctor(plane: controlplane.ControlPlane) -> list[dict[str, Any]]:
    command = [*processes.DRACHMA, "doctor", "--kubeconfig", str(plane.kubeconfig), "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    findings: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return findings


def _scrape(exporter: controlplane.Program, port: int) -> str:
    """Return the metrics of the exporter, or why there are none yet."""
    exporter.check()
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            return str(answer.read().decode())
    except OSError as error:
        return str(error)


@pytest.mark.parametrize("api_server", [programs.OLD_API_SERVER, "kube-apiserver"])
def test_claims_are_made_scheduled_and_released(api_server: str, tmp_path: pathlib.Path) -> None:
    programs.require(api_server)
    with (
        controlplane.control_plane(tmp_path, api_server=api_server, gates=(), apis="api/ga=true") as plane,
        wire.Wire(plane) as admin,
        plane.drachma("scheduler") as scheduler,
        plane.drachma("controllers", _CONTROLLERS) as controllers,
    ):
        objects.create(admin, objects.device_class(), objects.resource_slice("n1", 2), objects.template("one"))
        objects.create(admin, objects.node("n1"))
        scheduler.wait_for("leads by lease")
        controllers.wait_for("leads by lease")
        objects.create(admin, objects.pod("p", template_name="one"))
        assert objects.wait_for_node(admin, "p") == "n1"
        admin.call("DELETE", f"{objects.PODS}/p", {"gracePeriodSeconds": 0})
        patience.until(
            lambda: admin.call("GET", _CLAIMS).body["items"], lambda left: not left, what="the claim is gone"
        )
        scheduler.check()
        controllers.check()
        assert {each["check"] for each in _doctor(plane)} <= {"kind-not-served"}


def _in_version(document: dict[str, Any], version: str) -> dict[str, Any]:
    """Return an object of v1 as a version of the API has it; v1beta1 has no ``exactly`` and wraps devices."""
    changed = copy.deepcopy({**document, "apiVersion": f"resource.k8s.io/{version}"})
    if version == "v1beta1" and document["kind"] == "ResourceClaimTemplate":
        for request in changed["spec"]["spec"]["devices"]["requests"]:
            request.update(request.pop("exactly"))
    if version == "v1beta1" and document["kind"] == "ResourceSlice":
        changed["spec"]["devices"] = [{**each, "basic": {}} for each in changed["spec"]["devices"]]
    return changed


@pytest.mark.parametrize("version", ["v1beta2", "v1beta1"])
def test_the_newest_served_version_is_used(version: str, tmp_path: pathlib.Path) -> None:
    """Claims are made, scheduled and released on a server without v1, and the doctor names the version."""
    programs.require(programs.OLD_API_SERVER)
    apis = f"resource.k8s.io/v1=false,resource.k8s.io/{version}=true"
    claims = f"/apis/resource.k8s.io/{version}/resourceclaims"
    with (
        # The authoriser of nodes waits for slices of v1 itself, so this server cannot have it.
        controlplane.control_plane(
            tmp_path, api_server=programs.OLD_API_SERVER, gates=(), apis=apis, authorization="RBAC"
        ) as plane,
        wire.Wire(plane) as admin,
        plane.drachma("scheduler") as scheduler,
        plane.drachma("controllers", _CONTROLLERS) as controllers,
        ports.reserved() as port,
        plane.drachma("exporter", f"--metrics-port={port}", "--interval=1") as exporter,
    ):
        published = (objects.device_class(), objects.resource_slice("n1", 2), objects.template("one"))
        objects.create(admin, *(_in_version(each, version) for each in published), objects.node("n1"))
        scheduler.wait_for("leads by lease")
        controllers.wait_for("leads by lease")
        objects.create(admin, objects.pod("p", template_name="one"))
        assert objects.wait_for_node(admin, "p") == "n1"
        (claim,) = admin.call("GET", claims).body["items"]
        (result,) = claim["status"]["allocation"]["devices"]["results"]
        assert (result["driver"], result["pool"]) == (objects.DRIVER, "n1")
        counted = f'drachma_devices{{driver="{objects.DRIVER}",node="n1",state="allocated"}} 1.0'
        patience.until(lambda: _scrape(exporter, port), lambda text: counted in text, what="the device is counted")
        admin.call("DELETE", f"{objects.PODS}/p", {"gracePeriodSeconds": 0})
        patience.until(lambda: admin.call("GET", claims).body["items"], lambda left: not left, what="the claim is gone")
        scheduler.check()
        controllers.check()
        found = {each["check"]: each["message"] for each in _doctor(plane)}
        assert set(found) <= {"kind-not-served", "old-api-version"}
        assert f"the newest version is {version}" in found["old-api-version"]


def test_a_server_without_devices_is_said(tmp_path: pathlib.Path) -> None:
    """The scheduler does not start to decide, as kube-scheduler does not, and says which kinds are absent."""
    programs.require(programs.OLD_API_SERVER)
    with (
        controlplane.control_plane(
            tmp_path,
            api_server=programs.OLD_API_SERVER,
            gates=("DynamicResourceAllocation=false",),
            apis="resource.k8s.io/v1=false",
        ) as plane,
        ports.reserved() as port,
        plane.drachma("scheduler", f"--metrics-port={port}") as scheduler,
    ):
        for kind in ("deviceclasses", "resourceclaims", "resourceslices"):
            scheduler.wait_for(f"{kind}.resource.k8s.io: the server has it in none of resource.k8s.io/v1")
        with pytest.raises(urllib.error.HTTPError) as refusal:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz")
        assert refusal.value.code == 503
        assert "[-]resourceclaims.resource.k8s.io" in refusal.value.read().decode()
        assert "kind-not-served" in {each["check"] for each in _doctor(plane)}


@pytest.mark.skipif(not queues.DEFINITIONS.is_dir(), reason=f"Kueue's definitions absent: {queues.DEFINITIONS}")
def test_queues_and_exporter_work_on_an_old_server(tmp_path: pathlib.Path) -> None:
    programs.require(programs.OLD_API_SERVER)
    with (
        controlplane.control_plane(tmp_path, api_server=programs.OLD_API_SERVER, gates=(), apis="api/ga=true") as plane,
        wire.Wire(plane) as admin,
        ports.reserved() as port,
        plane.drachma("exporter", f"--metrics-port={port}", "--interval=1") as exporter,
    ):
        queues.install_definitions(admin)
        objects.create(admin, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kueue-system"}})
        queues.create_queue(admin, "team")
        with plane.drachma("queueing") as queueing:
            queueing.wait_for("leads by lease")
            for number in range(3):
                queues.create_job(admin, f"job-{number}", queue="team", suspend=True)
            patience.until(
                lambda: [each["spec"]["suspend"] for each in admin.call("GET", queues.JOBS).body["items"]].count(False),
                lambda count: count == 2,
                what="two Jobs are admitted, as many as the quota allows",
            )
            queueing.check()
        objects.create(admin, objects.device_class(), objects.node("n1"), objects.resource_slice("n1", 2))
        counted = f'drachma_devices{{driver="{objects.DRIVER}",node="n1",state="free"}} 2.0'
        patience.until(
            lambda: _scrape(exporter, port), lambda text: counted in text, what="the exporter counts the devices"
        )
