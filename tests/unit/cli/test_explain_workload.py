"""``drachma explain workload`` on files: what people and programs get to see, and what is refused."""

import json
import pathlib
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from drachma.cli.root import app

NEWER = "kueue.x-k8s.io/v1beta2"
OLDER = "kueue.x-k8s.io/v1beta1"


def an_object(kind: str, name: str, spec: dict[str, Any], *, api_version: str = NEWER, **more: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec, **more}


def a_workload(name: str, gpus: int, **more: Any) -> dict[str, Any]:
    template = {
        "spec": {
            "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "g"}]}}],
            "resourceClaims": [{"name": "g", "resourceClaimTemplateName": "one"}],
        }
    }
    spec = {"queueName": "jobs", "podSets": [{"name": "main", "count": gpus, "template": template}]}
    return an_object("Workload", name, spec, **more)


QUOTA = {"name": "spot", "resources": [{"name": "gpus", "nominalQuota": "2"}]}
GROUPS = [{"coveredResources": ["gpus"], "flavors": [QUOTA]}]
REQUEST = {"name": "r", "exactly": {"deviceClassName": "gpu.example.com"}}
CONFIGURATION = {
    "apiVersion": "config.kueue.x-k8s.io/v1beta2",
    "kind": "Configuration",
    "resources": {"deviceClassMappings": [{"name": "gpus", "deviceClassNames": ["gpu.example.com"]}]},
}
ADMITTED = {
    "conditions": [{"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved"}],
    "admission": {
        "clusterQueue": "team",
        "podSetAssignments": [
            {"name": "main", "flavors": {"gpus": "spot"}, "resourceUsage": {"gpus": "1"}, "count": 1}
        ],
    },
}
OBJECTS: list[dict[str, Any]] = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}},
    {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "of-no-interest"}},
    an_object("ResourceFlavor", "spot", {}),
    an_object(
        "ClusterQueue",
        "team",
        {"cohort": "all", "namespaceSelector": {}, "resourceGroups": GROUPS},
        api_version=OLDER,
    ),
    an_object("LocalQueue", "jobs", {"clusterQueue": "team"}),
    an_object("DeviceClass", "gpu.example.com", {}, api_version="resource.k8s.io/v1"),
    an_object(
        "ResourceClaimTemplate", "one", {"spec": {"devices": {"requests": [REQUEST]}}}, api_version="resource.k8s.io/v1"
    ),
    a_workload("running", 1, status=ADMITTED),
    a_workload("waiting", 2),
]
CONFIG_MAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "kueue-controller-manager-config", "namespace": "kueue-system"},
    "data": {"config.yaml": json.dumps(CONFIGURATION)},
}


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    place = tmp_path / "cluster"
    place.mkdir()
    (place / "objects.yaml").write_text(yaml.safe_dump_all([*OBJECTS, CONFIG_MAP]))
    return place


@pytest.mark.parametrize("name", ["kueue-manager-config", "kueue-controller-manager-config", "drachma-queueing-config"])
def test_the_configuration_may_have_any_of_its_names(tmp_path: pathlib.Path, name: str) -> None:
    """The name of Kueue's manifests, the name of the KEP, and the ConfigMap of a process with a configuration file."""
    config_map = {**CONFIG_MAP, "metadata": {"name": name, "namespace": "kueue-system"}}
    (tmp_path / "objects.yaml").write_text(yaml.safe_dump_all([*OBJECTS, config_map]))
    assert "flavor spot: gpus: needs 2, 1 can be had, 1 short" in explain("waiting", "-f", str(tmp_path))[1]


def explain(*arguments: str) -> tuple[int, str]:
    answer = CliRunner().invoke(app, ["explain", "workload", *arguments])
    assert answer.exception is None or isinstance(answer.exception, SystemExit), answer.exception
    return answer.exit_code, answer.output


def test_what_is_short_and_what_would_help(folder: pathlib.Path) -> None:
    code, text = explain("waiting", "-f", str(folder))
    assert code == 1
    assert "number 1 of 1 in cluster queue team (/all/team), by local queue jobs" in text
    assert "flavor spot: gpus: needs 2, 1 can be had, 1 short" in text
    assert "1 in use by cluster queue team: default/running 1" in text
    assert "1 more gpus of flavor spot as nominal quota of cluster queue team (3 then)" in text
    assert "the end of default/running" in text


def test_the_same_as_a_document(folder: pathlib.Path) -> None:
    code, text = explain("waiting", "-f", str(folder), "-o", "json")
    document = json.loads(text)
    assert code == 1
    assert document["outcome"] == "DoesNotFit"
    assert [each["missing"] for each in document["shortages"]] == ["1"]
    assert [each["endings"] for each in document["remedies"]] == [[], ["default/running"]]


def test_a_workload_is_found_by_its_job(folder: pathlib.Path) -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u"}
    objects = [{**each, "metadata": {**each["metadata"], "ownerReferences": [owner]}} for each in OBJECTS[-1:]]
    (folder / "objects.yaml").write_text(yaml.safe_dump_all([*OBJECTS[:-1], *objects, CONFIG_MAP]))
    assert explain("train", "-f", str(folder))[1].startswith("workload default/waiting: does not fit")
    both = [{**each, "metadata": {**each["metadata"], "ownerReferences": [owner]}} for each in OBJECTS[-2:]]
    (folder / "objects.yaml").write_text(yaml.safe_dump_all([*OBJECTS[:-2], *both, CONFIG_MAP]))
    refused = CliRunner().invoke(app, ["explain", "workload", "train", "-f", str(folder)])
    assert str(refused.exception) == "train has several workloads: default/running, default/waiting"


def test_of_an_elastic_job_the_larger_workload_is_meant_that_waits_to_replace_the_other(folder: pathlib.Path) -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u"}
    running, waiting = ({**each, "metadata": {**each["metadata"], "ownerReferences": [owner]}} for each in OBJECTS[-2:])
    waiting["metadata"]["annotations"] = {"kueue.x-k8s.io/workload-slice-replacement-for": "default/running"}
    (folder / "objects.yaml").write_text(yaml.safe_dump_all([*OBJECTS[:-2], running, waiting, CONFIG_MAP]))
    assert explain("train", "-f", str(folder))[1].startswith("workload default/waiting: ")


def test_who_has_quota_is_well(folder: pathlib.Path) -> None:
    code, text = explain("running", "-f", str(folder))
    assert (code, text.splitlines()[0]) == (
        0,
        "workload default/running: has quota, and waits for admission checks",
    )


def test_a_configuration_in_place_of_that_of_the_cluster(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    unmapped = tmp_path / "configuration.yaml"
    unmapped.write_text(json.dumps({**CONFIGURATION, "resources": {}}))
    code, text = explain("waiting", "-f", str(folder), "--queueing-config", str(unmapped))
    assert code == 1
    assert "is in no queue: spec.podSets[0]" in text
    assert "is not mapped in DRA configuration" in text


def test_claims_by_name_where_a_policy_has_them_charged(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    named = a_workload("named", 3)
    (entry,) = named["spec"]["podSets"][0]["template"]["spec"]["resourceClaims"]
    entry["resourceClaimName"] = "mine"
    del entry["resourceClaimTemplateName"]
    request = {"name": "r", "exactly": {"deviceClassName": "gpu.example.com", "count": 2}}
    claim = an_object("ResourceClaim", "mine", {"devices": {"requests": [request]}}, api_version="resource.k8s.io/v1")
    (folder / "named.yaml").write_text(yaml.safe_dump_all([named, claim]))
    policy = {"apiVersion": "config.drachma.dev/v1", "kind": "QueueingPolicy", "namedClaims": "Shared"}
    configuration = tmp_path / "configuration.yaml"
    configuration.write_text(yaml.safe_dump_all([CONFIGURATION, policy]))
    assert "does not support use of resource claims" in explain("named", "-f", str(folder))[1]
    _, text = explain("named", "-f", str(folder), "--queueing-config", str(configuration))
    assert "gpus: needs 2, 1 can be had, 1 short" in text


def test_a_queue_that_is_stopped(folder: pathlib.Path) -> None:
    stopped = [
        {**each, "spec": {**each["spec"], "stopPolicy": "Hold"}} if each["kind"] == "LocalQueue" else each
        for each in OBJECTS
    ]
    (folder / "objects.yaml").write_text(yaml.safe_dump_all([*stopped, CONFIG_MAP]))
    assert explain("waiting", "-f", str(folder)) == (
        1,
        (
            "workload default/waiting: is in no queue: local queue default/jobs is stopped\n"
            "  cluster queue team, by local queue jobs\n"
        ),
    )


@pytest.mark.parametrize(
    ("reason", "message", "want"),
    [
        pytest.param("Preempted", "Preempted to accommodate a workload", "is deactivated", id="by-hand"),
        pytest.param(
            "DeactivatedDueToRequeuingLimitExceeded",
            "The workload is deactivated due to exceeding the maximum number of re-queuing retries",
            "is deactivated due to exceeding the maximum number of re-queuing retries",
            id="by-the-component",
        ),
    ],
)
def test_a_workload_that_is_deactivated(folder: pathlib.Path, reason: str, message: str, want: str) -> None:
    evicted = {"type": "Evicted", "status": "True", "reason": reason, "message": message}
    over = a_workload("over", 1, status={"conditions": [evicted]})
    over["spec"]["active"] = False
    (folder / "over.yaml").write_text(yaml.safe_dump(over))
    code, text = explain("over", "-f", str(folder))
    assert (code, text.splitlines()[0]) == (1, f"workload default/over: is in no queue: it {want}")


def test_what_cannot_be_read_is_told_with_its_place(folder: pathlib.Path) -> None:
    (folder / "more.yaml").write_text(yaml.safe_dump_all([OBJECTS[-1], an_object("LocalQueue", "", {})]))
    code, text = explain("waiting", "-f", str(folder))
    assert code == 2
    assert "Workload waiting: is given twice" in text
    assert "metadata.name: required" in text
