"""``drachma allocate`` as a user runs it: on manifests, on dumps, with explanations, and on recorded cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import structs
from typer.testing import CliRunner, Result

from drachma import errors
from drachma.api import codec, meta, nodeselector
from drachma.cli import root
from drachma.testing import (
    claim,
    claim_template,
    device,
    device_class,
    namespace,
    node,
    pod,
    resource_slice,
    taint_rule,
)

DRIVER = "gpu.example.com"
CLASS = device_class("gpu", f'device.driver == "{DRIVER}"').build()


def run(*arguments: str, stdin: str | bytes = "") -> Result:
    return CliRunner().invoke(root.app, ["allocate", *arguments], input=stdin)


def dump(*objects: meta.Object) -> str:
    """What ``kubectl get -A -o json`` writes."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [codec.encode(entry) for entry in objects]})


def gpus(name: str, *devices: Any, on: str | None = None) -> meta.Object:
    return resource_slice(name, driver=DRIVER).on_node(on or name).devices(*devices).build()


def written(result: Result) -> list[Any]:
    return list(yaml.safe_load_all(result.stdout))


def devices_of(document: Any) -> list[str]:
    return [entry["device"] for entry in document["status"]["allocation"]["devices"]["results"]]


ONE = claim("one").request("r", device_class="gpu").build()
TWO = claim("two").request("r", device_class="gpu", count=2).build()


def test_claims_are_written_with_their_allocation() -> None:
    result = run("-f", "-", stdin=dump(CLASS, gpus("node-1", "g0", "g1"), node("node-1").build(), ONE))
    assert result.exit_code == 0
    assert result.stderr == "drachma: claim default/one: fits on node node-1\n"
    [found] = written(result)
    assert (found["apiVersion"], found["kind"], found["metadata"]["name"]) == (
        "resource.k8s.io/v1",
        "ResourceClaim",
        "one",
    )
    assert devices_of(found) == ["g0"]


def test_what_one_claim_gets_counts_for_the_next() -> None:
    result = run("-f", "-", stdin=dump(CLASS, gpus("node-1", "g0", "g1", "g2"), ONE, TWO))
    assert result.exit_code == 0
    assert [devices_of(entry) for entry in written(result)] == [["g0"], ["g1", "g2"]]


def test_allocated_claims_count_and_are_not_written_again() -> None:
    held = claim("held").request("r", device_class="gpu").allocated(("r", DRIVER, "node-1", "g0")).build()
    result = run("-f", "-", stdin=dump(CLASS, gpus("node-1", "g0", "g1"), held, ONE))
    assert [devices_of(entry) for entry in written(result)] == [["g1"]]


def test_nodes_are_tried_in_the_order_of_their_names() -> None:
    nodes = [node(name).build() for name in ("node-3", "node-1", "node-2")]
    result = run("-f", "-", stdin=dump(*nodes, CLASS, gpus("node-3", "g0", "g1"), gpus("node-2", "g0", "g1"), TWO))
    assert result.stderr == "drachma: claim default/two: fits on node node-2\n"


def test_without_nodes_those_that_slices_name_are_tried() -> None:
    result = run("-f", "-", stdin=dump(CLASS, gpus("b", "g0"), gpus("a", "g0"), ONE))
    assert result.stderr == "drachma: claim default/one: fits on node a\n"


def test_devices_for_all_nodes_need_no_node() -> None:
    shared = resource_slice("net", driver=DRIVER).on_all_nodes().devices("n0").build()
    result = run("-f", "-", stdin=dump(CLASS, shared, ONE))
    assert result.stderr == "drachma: claim default/one: fits on nodes of any name\n"
    assert "nodeSelector" not in written(result)[0]["status"]["allocation"]


def test_one_node_and_one_claim_can_be_named() -> None:
    text = dump(CLASS, gpus("node-1", "g0"), gpus("node-2", "g1"), ONE, TWO)
    result = run("-f", "-", "--node", "node-2", "--claim", "default/one", "-o", "json", stdin=text)
    assert result.exit_code == 0
    assert devices_of(json.loads(result.stdout)) == ["g1"]


def test_several_claims_as_json_are_a_list() -> None:
    result = run("-f", "-", "-o", "json", stdin=dump(CLASS, gpus("node-1", "g0", "g1", "g2"), ONE, TWO))
    assert [entry["metadata"]["name"] for entry in json.loads(result.stdout)["items"]] == ["one", "two"]


def test_what_does_not_fit_is_an_error_and_the_rest_is_written() -> None:
    result = run("-f", "-", stdin=dump(CLASS, gpus("node-1", "g0"), TWO, ONE))
    assert result.exit_code == 1
    assert result.stderr == (
        "drachma: claim default/two: does not fit on node node-1 (--explain says why)\n"
        "drachma: claim default/one: fits on node node-1\n"
    )
    assert [devices_of(entry) for entry in written(result)] == [["g0"]]


def test_explain_as_text() -> None:
    result = run("-f", "-", "--explain", stdin=dump(CLASS, gpus("node-1", "g0"), gpus("node-2", "g1"), TWO))
    assert result.exit_code == 1
    assert result.stderr == "drachma: claim default/two: does not fit on any of 2 nodes\n"
    assert result.stdout.startswith("node node-1: claim default/two does not fit\n")
    assert result.stdout.endswith(
        "  smallest change that would make it fit: lower the count of request r from 2 to 1\n"
        "  the same on 1 more nodes: node-2\n"
    )


def test_explain_as_data() -> None:
    text = dump(CLASS, gpus("node-1", "g0"), gpus("node-2", "g1"), TWO)
    found = json.loads(run("-f", "-", "--explain", "-o", "json", stdin=text).stdout)
    assert (found["kind"], found["node"], found["outcome"], found["alsoOn"]) == (
        "Explanation",
        "node-1",
        "DoesNotFit",
        ["node-2"],
    )


def test_explain_is_silent_about_what_fits() -> None:
    text = dump(CLASS, gpus("node-1", "g0"), ONE)
    assert run("-f", "-", "--explain", stdin=text).stdout == run("-f", "-", stdin=text).stdout


def test_nodes_beyond_those_explained_are_named() -> None:
    slices = [gpus(f"node-{number}", *(f"g{place}" for place in range(number))) for number in range(1, 8)]
    wanted = claim("many").request("r", device_class="gpu", count=20).build()
    result = run("-f", "-", "--explain", stdin=dump(CLASS, *slices, wanted))
    assert result.stdout.count("claim default/many does not fit") == 5
    assert result.stdout.endswith("2 more nodes, for other reasons: node-6, node-7\n")


def test_taint_rules_apply_unless_switched_off() -> None:
    text = dump(CLASS, gpus("node-1", "g0"), taint_rule("out", key="hot", driver=DRIVER).build(), ONE)
    result = run("-f", "-", "--explain", stdin=text)
    assert "hot:NoSchedule: g0" in result.stdout
    assert run("-f", "-", "--feature-gates", "DRADeviceTaintRules=false", stdin=text).exit_code == 0


def test_defaults_are_a_servers() -> None:
    text = """\
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaim
metadata: {name: old}
spec: {devices: {requests: [{name: r, deviceClassName: gpu}]}}
"""
    result = run(
        "-f", "-", stdin=f"{yaml.safe_dump_all([codec.encode(CLASS), codec.encode(gpus('n', 'g0'))])}---\n{text}"
    )
    [found] = written(result)
    assert (found["apiVersion"], found["metadata"]["namespace"]) == ("resource.k8s.io/v1beta1", "default")
    assert "count" not in found["spec"]["devices"]["requests"][0]
    assert devices_of(found) == ["g0"]


def test_shares_have_ids_that_stay_the_same() -> None:
    shared = gpus("node-1", device("g0").capacity("memory", "10Gi", default="1Gi").shared())
    text = dump(CLASS, shared, ONE, claim("other").request("r", device_class="gpu").build())
    first, second = written(run("-f", "-", stdin=text))
    ids = [entry["status"]["allocation"]["devices"]["results"][0]["shareID"] for entry in (first, second)]
    assert len(set(ids)) == 2
    again = written(run("-f", "-", stdin=text))
    assert again == [first, second]


def test_admin_access_needs_a_namespace_that_grants_it() -> None:
    admin = claim("admin").request("r", device_class="gpu", admin_access=True).build()
    text = [CLASS, gpus("node-1", "g0"), admin]
    refused = run("-f", "-", stdin=dump(*text, namespace("default").build()))
    assert refused.exit_code == 1
    assert refused.stderr == (
        "drachma: claim default/admin: spec.devices.requests[0].adminAccess: Forbidden: admin access to devices "
        "requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace\n"
    )
    granted = namespace("default", labels={"resource.kubernetes.io/admin-access": "true"}).build()
    assert run("-f", "-", stdin=dump(*text, granted)).exit_code == 0
    assert run("-f", "-", stdin=dump(*text)).exit_code == 0


def test_node_features_are_read() -> None:
    base = codec.encode(node("node-1").build())
    base["status"]["declaredFeatures"] = ["DRAOptionalNodeOperations"]
    skipping = codec.encode(gpus("node-1", "g0"))
    skipping["spec"]["skipNodeOperations"] = ["prepare"]
    items = [codec.encode(CLASS), codec.encode(ONE), skipping]
    able = run("-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": [*items, base]}))
    assert able.exit_code == 0
    unable = run("-f", "-", "--explain", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    assert "needs DRAOptionalNodeOperations: its slice skips node operations" in unable.stdout


def test_other_objects_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "dump.json").write_text(dump(CLASS, gpus("node-1", "g0"), ONE, pod("p").build()))
    (tmp_path / "app.yaml").write_text("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n")
    assert run("-f", str(tmp_path)).exit_code == 0


def test_errors_of_the_allocator_are_reported_once() -> None:
    result = run("-f", "-", "--explain", stdin=dump(gpus("node-1", "g0"), gpus("node-2", "g0"), ONE))
    assert result.exit_code == 1
    message = (
        'claim default/one, request r: could not retrieve device class gpu: deviceclass.resource.k8s.io "gpu" not found'
    )
    assert result.stderr == f"drachma: claim default/one: {message}\n"
    assert result.stdout == f"node node-1: claim default/one cannot be allocated: {message}\n"


def test_invalid_pools_rule_out_one_node_only() -> None:
    text = dump(CLASS, gpus("node-1", "g0", "g0"), gpus("node-2", "g0"), ONE, TWO)
    result = run("-f", "-", stdin=text)
    assert result.stderr == (
        "drachma: claim default/one: fits on node node-2\n"
        "drachma: claim default/two: does not fit on any of 2 nodes; on node node-1: invalid resource pools were "
        "encountered (--explain says why)\n"
    )


@pytest.mark.parametrize(
    ("arguments", "stdin", "want"),
    [
        pytest.param([], "", "-f: required, unless there is --batch", id="nothing-to-read"),
        pytest.param(["--timing", "-f", "-"], "", "--timing: goes with --batch only", id="timing-without-batch"),
        pytest.param(
            ["--batch", "--explain"],
            "",
            "--batch: goes with --timing only; its lines hold everything else",
            id="batch-with-other-options",
        ),
        pytest.param(
            ["-f", "-", "--claim", "x/y"],
            dump(CLASS, ONE),
            "--claim x/y: there is no such claim, but default/one",
            id="unknown-claim",
        ),
        pytest.param(
            ["-f", "-", "--claim", "one"],
            dump(CLASS, claim("one").allocated(("r", DRIVER, "p", "g0")).build()),
            f"--claim default/one: is allocated already: {DRIVER}/p/g0",
            id="allocated-claim",
        ),
        pytest.param(
            ["-f", "-", "--node", "x"],
            dump(CLASS, node("node-1").build(), ONE),
            "--node x: there is no such node, but node-1",
            id="unknown-node",
        ),
        pytest.param(
            ["-f", "-"],
            dump(ONE, ONE),
            "standard input: document 1, items[1]: ResourceClaim default/one: is given twice, first in "
            "standard input: document 1, items[0]",
            id="given-twice",
        ),
        pytest.param(
            ["-f", "-"],
            "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {generateName: x-}\n",
            "standard input: document 1: ResourceClaim x-: metadata.name: required",
            id="no-name",
        ),
        pytest.param(
            ["-f", "-"],
            "apiVersion: resource.k8s.io/v1beta9\nkind: ResourceClaim\nmetadata: {name: x}\n",
            "standard input: document 1: kind ResourceClaim does not exist in resource.k8s.io/v1beta9: it is served "
            "in resource.k8s.io/v1, resource.k8s.io/v1beta2, resource.k8s.io/v1beta1, resource.k8s.io/v1alpha3, "
            "resource.k8s.io/v1alpha2",
            id="unknown-version",
        ),
        pytest.param(
            ["-f", "-"],
            "just text",
            'standard input: document 1: expected an object, found string "just text"',
            id="not-an-object",
        ),
        pytest.param(
            ["-f", "-", "--feature-gates", "Nonsense=true"],
            dump(ONE),
            "unrecognized feature gate: Nonsense",
            id="unknown-gate",
        ),
    ],
)
def test_refusals(arguments: list[str], stdin: str, want: str) -> None:
    result = run(*arguments, stdin=stdin)
    # What is raised gets its exit code from the main function, which is not called here.
    assert result.exit_code == (1 if isinstance(result.exception, errors.DrachmaError) else 2)
    assert (str(result.exception) if result.stderr == "" else result.stderr.strip().removeprefix("drachma: ")) == want


@pytest.mark.parametrize(
    ("metadata", "want"),
    [
        pytest.param({}, 2, id="written-by-a-person"),
        pytest.param({"uid": "u"}, 0, id="stored-by-a-newer-server"),
    ],
)
def test_unknown_fields(metadata: dict[str, str], want: int) -> None:
    document = codec.encode(ONE)
    document |= {"spek": {}, "metadata": {**document["metadata"], **metadata}}
    items = [codec.encode(CLASS), codec.encode(gpus("node-1", "g0")), document]
    result = run("-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    assert result.exit_code == want
    assert "items[2]: ResourceClaim default/one: spek: unknown field" in result.stderr


def workload(kind: str, spec: dict[str, Any], *, api_version: str = "apps/v1", **metadata: str) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "w", **metadata}, "spec": spec}


POD_SPEC: dict[str, Any] = {
    "containers": [{"name": "c", "image": "i"}],
    "resourceClaims": [{"name": each, "resourceClaimTemplateName": "t"} for each in ("a", "b")],
}
TEMPLATE = {"spec": POD_SPEC}


@pytest.mark.parametrize(
    ("document", "want"),
    [
        pytest.param(workload("Pod", POD_SPEC, api_version="v1"), ["w"], id="pod"),
        pytest.param(workload("Deployment", {"replicas": 2, "template": TEMPLATE}), ["w-0", "w-1"], id="deployment"),
        pytest.param(workload("StatefulSet", {"template": TEMPLATE}), ["w-0"], id="stateful-set"),
        pytest.param(workload("DaemonSet", {"template": TEMPLATE}), ["w-0", "w-1"], id="daemon-set"),
        pytest.param(
            workload("Job", {"parallelism": 3, "completions": 2, "template": TEMPLATE}, api_version="batch/v1"),
            ["w-0", "w-1"],
            id="job",
        ),
        pytest.param(
            workload("CronJob", {"jobTemplate": {"spec": {"template": TEMPLATE}}}, api_version="batch/v1"),
            ["w-0"],
            id="cron-job",
        ),
        pytest.param(workload("Deployment", {"template": TEMPLATE}, uid="u"), [], id="of-a-server"),
    ],
)
def test_what_pods_of_workloads_would_get(document: dict[str, Any], want: list[str]) -> None:
    given = [CLASS, node("n1").build(), node("n2").build(), gpus("n1", "g0", "g1", "g2"), gpus("n2", "g0", "g1")]
    template = claim_template("t").request("r", device_class="gpu").build()
    items = [*map(codec.encode, (*given, template)), document]
    result = run("-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    assert result.exit_code == 0
    names = [each["metadata"]["name"] for each in written(result) if each]
    assert names == [f"{name}-{entry}" for name in want for entry in ("a", "b")]
    # Claims of one pod are on one node: the third device of the first is not enough for two.
    nodes = [line.rpartition(" ")[2] for line in result.stderr.splitlines() if "fits on node" in line]
    assert nodes == [("n1", "n2")[number] for number in range(len(want)) for _ in range(2)]


def test_claims_of_a_pod_that_fit_only_apart() -> None:
    template = claim_template("t").request("r", device_class="gpu").build()
    given = [CLASS, gpus("n1", "g0"), gpus("n2", "g0"), template]
    items = [*map(codec.encode, given), workload("Pod", POD_SPEC, api_version="v1")]
    result = run("-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    assert result.exit_code == 1
    want = "drachma: claims default/w-a, default/w-b together: do not fit on any of 2 nodes (--explain says why)\n"
    assert result.stderr == want


def test_a_template_that_is_not_there() -> None:
    items = [codec.encode(CLASS), workload("Pod", POD_SPEC, api_version="v1")]
    result = run("-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    assert result.exit_code == 2
    assert "pod default/w: there is no ResourceClaimTemplate default/t" in result.stderr


def test_nothing_to_do() -> None:
    result = run("-f", "-", stdin=dump(CLASS))
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "drachma: nothing to do: 0 claims, none without an allocation\n"


def case(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "name": name,
        "features": [],
        "node": {"metadata": {"name": "node-1"}},
        "classes": [codec.encode(CLASS)],
        "claims": [{"metadata": {"name": "c"}, "spec": codec.encode(TWO)["spec"]}],
        "slices": [codec.encode(gpus("node-1", "g0", "g1"))],
        **fields,
    }


def answers(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def lines(*cases: dict[str, Any]) -> str:
    for entry in cases:
        for wanted in entry["claims"]:
            # Recorded cases have been through an API server.
            wanted["spec"]["devices"]["requests"][0]["exactly"]["allocationMode"] = "ExactCount"
    return "".join(json.dumps(entry) + "\n" for entry in cases)


def test_batch_answers_line_by_line() -> None:
    taken = [{"driver": DRIVER, "pool": "node-1", "device": "g0"}]
    result = run(
        "--batch", stdin=lines(case("fits"), case("does-not", allocatedDevices=taken), case("error", classes=[]))
    )
    assert result.exit_code == 0
    fits, does_not, error = answers(result)
    assert [entry["device"] for entry in fits["results"][0]["devices"]["results"]] == ["g0", "g1"]
    assert does_not == {"name": "does-not"}
    assert error == {
        "name": "error",
        "error": 'claim c, request r: could not retrieve device class gpu:  "not found" not found',
    }


def test_batch_takes_the_time() -> None:
    result = run("--batch", "--timing", stdin=lines(case("once"), case("often", repeat=3)))
    assert [(entry["name"], entry["allocUs"] > 0, "results" in entry) for entry in answers(result)] == [
        ("once", True, True),
        ("often", True, True),
    ]


@pytest.mark.parametrize(
    ("line", "want"),
    [
        pytest.param("{", "line 2: not JSON: ", id="not-json"),
        pytest.param("[]", "line 2: expected an object with a case", id="not-an-object"),
        pytest.param('{"name": "x"}', "line 2: not a case: Object missing required field `node`", id="no-node"),
        pytest.param(
            json.dumps(case("x", features=["Nonsense"])),
            "line 2: feature gate Nonsense: not known to the allocator",
            id="unknown-feature",
        ),
        pytest.param(
            json.dumps(case("x", allocatedSharedDeviceIDs=["a/b"])),
            "line 2: allocatedSharedDeviceIDs: 'a/b': expected driver/pool/device/share",
            id="broken-share",
        ),
        pytest.param(json.dumps(case("x", repeat=0)), "line 2: not a case: repeat: 0: must be at least 1", id="repeat"),
        pytest.param(
            json.dumps(case("x", claims=[{"kind": "DeviceClass"}])),
            "line 2: DeviceClass (unnamed): expected a ResourceClaim",
            id="wrong-kind",
        ),
    ],
)
def test_bad_lines_do_not_stop_a_batch(line: str, want: str) -> None:
    good = lines(case("good"))
    result = run("--batch", stdin=f"{good}{line}\n\n{good}")
    assert result.exit_code == 1
    first, bad, last = answers(result)
    assert bad["error"].startswith(want)
    assert result.stderr.startswith(f"drachma: {want}")
    assert first == last
    assert "results" in first


# The claims of a pod


def test_the_claims_of_a_pod_are_tried_together() -> None:
    """Each alone would get the first node; together there is room on the second only."""
    wanting = pod("p").uid("u").claim("a", claim="one").claim("b", claim="two").container("c").build()
    machines = [node("n1").build(), gpus("n1", "g0", "g1"), node("n2").build(), gpus("n2", "g0", "g1", "g2")]
    other = claim("other").request("r", device_class="gpu").build()
    result = run("-f", "-", "--pod", "p", stdin=dump(CLASS, *machines, ONE, TWO, other, wanting))
    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        "drachma: claim default/one: fits on node n2",
        "drachma: claim default/two: fits on node n2",
    ]


def test_claims_that_a_pod_would_get_from_templates_are_its_own() -> None:
    template = claim_template("t").request("r", device_class="gpu").build()
    wanting = pod("p").claim("a", template="t").container("c").build()
    result = run("-f", "-", "--pod", "default/p", stdin=dump(CLASS, gpus("n1", "g0"), template, ONE, wanting))
    assert result.stderr == "drachma: claim default/p-a: fits on node n1\n"


def test_a_pod_goes_where_its_other_claims_are() -> None:
    held = claim("held").request("r", device_class="gpu").allocated(("r", DRIVER, "n2", "g0")).build()
    term = nodeselector.NodeSelectorTerm(
        match_fields=(nodeselector.NodeSelectorRequirement(key="metadata.name", operator="In", values=("n2",)),)
    )
    assert held.status.allocation is not None
    allocation = structs.replace(
        held.status.allocation, node_selector=nodeselector.NodeSelector(node_selector_terms=(term,))
    )
    held = structs.replace(held, status=structs.replace(held.status, allocation=allocation))
    wanting = pod("p").uid("u").claim("a", claim="held").claim("b", claim="one").container("c").build()
    machines = [node("n1").build(), gpus("n1", "g0"), node("n2").build(), gpus("n2", "g0", "g1")]
    result = run("-f", "-", "--pod", "p", stdin=dump(CLASS, *machines, held, ONE, wanting))
    assert result.stderr == "drachma: claim default/one: fits on node n2\n"


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        pytest.param(["--pod", "x"], "--pod default/x: there is no such pod, but default/p", id="no-pod"),
        pytest.param(["--pod", "p"], "--pod default/p: its claim default/gone is not there", id="no-claim"),
        pytest.param(["--pod", "p", "--claim", "one"], "--pod: goes without --claim", id="both"),
    ],
)
def test_pods_that_cannot_be_tried(arguments: list[str], want: str) -> None:
    wanting = pod("p").uid("u").claim("a", claim="gone").container("c").build()
    result = run("-f", "-", *arguments, stdin=dump(CLASS, wanting))
    assert want in str(result.exception)
