"""kubectl 1.37 against a running server: the commands that people use every day."""

import pathlib
import stat

import pytest

from tests.e2e.conftest import Kubectl, Watch

CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: gpu
  labels: {app: demo}
spec:
  devices:
    requests:
    - name: gpu
      exactly: {deviceClassName: gpu.example.com}
"""
POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: worker
  labels: {app: demo}
spec:
  containers:
  - name: main
    image: registry.example/pause:3.10
    resources: {claims: [{name: gpu}]}
  resourceClaims:
  - {name: gpu, resourceClaimName: gpu}
"""


def test_versions_and_resources(kubectl: Kubectl) -> None:
    assert "Server Version: v1.37.0+drachma" in kubectl("version")
    names = kubectl("api-resources", "--no-headers", "-o", "name").split()
    assert {"pods", "resourceclaims.resource.k8s.io", "deployments.apps", "leases.coordination.k8s.io"} <= set(names)
    assert "resource.k8s.io/v1beta1" in kubectl("api-versions")


def test_apply_get_and_describe(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", "-", stdin=f"{CLAIM}---\n{POD}").splitlines() == [
        "resourceclaim.resource.k8s.io/gpu created",
        "pod/worker created",
    ]
    assert kubectl("apply", "-f", "-", stdin=POD) == "pod/worker unchanged\n"
    changed = kubectl("apply", "-f", "-", stdin=CLAIM.replace("app: demo", "app: other"))
    assert changed == "resourceclaim.resource.k8s.io/gpu configured\n"
    lines = kubectl("get", "resourceclaims").splitlines()
    assert lines[0].split() == ["NAME", "STATE", "AGE"]
    assert lines[1].split()[:2] == ["gpu", "pending"]
    assert kubectl("get", "pods", "-o", "wide").split()[:9] == [
        "NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE", "NOMINATED", "NODE",
    ]  # fmt: skip
    assert kubectl("get", "resourceclaim", "gpu", "-o", "jsonpath={.metadata.labels.app}") == "other"
    assert "allocationMode: ExactCount" in kubectl("get", "resourceclaim", "gpu", "-o", "yaml")
    assert kubectl("get", "pods", "-l", "app=demo", "-o", "name") == "pod/worker\n"
    assert kubectl("get", "pods", "--field-selector", "spec.nodeName=n1", "-o", "name") == ""
    described = kubectl("describe", "pod", "worker")
    assert "QoS Class:        BestEffort" in described
    assert "Device Class Name:  gpu.example.com" in kubectl("describe", "resourceclaim", "gpu")
    assert kubectl("diff", "-f", "-", stdin=POD) == ""


def test_apply_on_the_server(kubectl: Kubectl) -> None:
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared}\ndata: {a: '1'}\n"
    kubectl("apply", "--server-side", "--field-manager=one", "-f", "-", stdin=config)
    other = config.replace("'1'", "'2'")
    refused = kubectl("apply", "--server-side", "--field-manager=two", "-f", "-", stdin=other, fails=True)
    assert 'conflict with "one": .data.a' in refused
    kubectl("apply", "--server-side", "--field-manager=two", "--force-conflicts", "-f", "-", stdin=other)
    assert kubectl("get", "configmap", "shared", "-o", "jsonpath={.data.a}") == "2"
    kubectl("apply", "-f", "-", stdin=POD)
    assert "serverside-applied" in kubectl("apply", "--server-side", "-f", "-", stdin=POD)


def test_patch_label_annotate_and_edit(kubectl: Kubectl, tmp_path: pathlib.Path) -> None:
    kubectl("apply", "-f", "-", stdin=POD)
    kubectl("label", "pod", "worker", "tier=front")
    kubectl("annotate", "pod", "worker", "note=hello")
    kubectl("patch", "pod", "worker", "-p", '{"spec":{"containers":[{"name":"main","image":"registry.example/p:2"}]}}')
    kubectl("patch", "pod", "worker", "--type=merge", "-p", '{"metadata":{"labels":{"app":null}}}')
    kubectl("patch", "pod", "worker", "--type=json", "-p", '[{"op":"add","path":"/metadata/labels/z","value":"1"}]')
    shown = kubectl("get", "pod", "worker", "-o", "jsonpath={.metadata.labels}{.spec.containers[0].image}")
    assert shown == '{"tier":"front","z":"1"}registry.example/p:2'
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/note: hello/note: edited/" "$1"\n')
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    assert kubectl("edit", "pod", "worker", KUBE_EDITOR=str(editor)) == "pod/worker edited\n"
    assert kubectl("get", "pod", "worker", "-o", "jsonpath={.metadata.annotations.note}") == "edited"


def test_mistakes_are_explained(kubectl: Kubectl) -> None:
    misspelt = kubectl("apply", "-f", "-", stdin=POD.replace("resourceClaims:", "resourceClaimz:"), fails=True)
    assert 'strict decoding error: unknown field "spec.resourceClaimz"' in misspelt
    invalid = kubectl(
        "apply", "-f", "-", stdin=CLAIM.replace("name: gpu\n      exactly", "name: G!\n      exactly"), fails=True
    )
    assert "spec.devices.requests[0].name: Invalid value" in invalid
    kubectl("apply", "-f", "-", stdin=CLAIM)
    immutable = kubectl("apply", "-f", "-", stdin=CLAIM.replace("gpu.example.com", "x.example.com"), fails=True)
    assert "field is immutable" in immutable
    assert 'pods "none" not found' in kubectl("get", "pod", "none", fails=True)


def test_create_run_scale_and_delete(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "settings", "--from-literal=a=b")
    kubectl("create", "secret", "generic", "key", "--from-literal=x=y")
    kubectl("create", "deployment", "web", "--image=registry.example/web:1", "--replicas=2")
    kubectl("create", "job", "once", "--image=registry.example/job:1", "--", "true")
    kubectl("run", "alone", "--image=registry.example/alone:1")
    kubectl("scale", "deployment", "web", "--replicas=5")
    assert kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}") == "5"
    assert kubectl("get", "all", "-o", "name").split() == ["pod/alone", "deployment.apps/web", "job.batch/once"]
    kubectl("delete", "pod", "alone")
    kubectl("delete", "deployment,job,configmap,secret", "--all")
    assert kubectl("get", "all", "-o", "name") == ""


def test_explain(kubectl: Kubectl) -> None:
    explained = kubectl("explain", "resourceclaim.spec.devices.requests.exactly")
    assert "GROUP:      resource.k8s.io" in explained
    assert "deviceClassName" in explained
    assert "containers\t<[]Container> -required-" in kubectl("explain", "pod.spec")


def test_wait_for_a_condition_and_for_the_end(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=POD)
    ready = '{"status":{"conditions":[{"type":"Ready","status":"True"}]}}'
    kubectl("patch", "pod", "worker", "--subresource=status", "--type=merge", "-p", ready)
    assert "condition met" in kubectl("wait", "--for=condition=Ready", "pod/worker", "--timeout=90s")
    kubectl("delete", "pod", "worker", "--wait=false")
    kubectl("wait", "--for=delete", "pod/worker", "--timeout=90s")


def test_get_and_watch(kubectl: Kubectl, watch: Watch) -> None:
    with watch("resourceclaims", "-o", "name") as next_line:
        kubectl("apply", "-f", "-", stdin=CLAIM)
        assert next_line() == "resourceclaim.resource.k8s.io/gpu\n"


def test_other_versions(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=CLAIM)
    path = "jsonpath={.apiVersion} {.spec.devices.requests[0].deviceClassName}"
    old = kubectl("get", "resourceclaims.v1beta1.resource.k8s.io", "gpu", "-o", path)
    assert old == "resource.k8s.io/v1beta1 gpu.example.com"
    older = kubectl("get", "resourceclaims.v1alpha3.resource.k8s.io", "gpu", "-o", path)
    assert older == "resource.k8s.io/v1alpha3 gpu.example.com"


@pytest.mark.parametrize("policy", ["background", "foreground", "orphan"])
def test_deletion_policies(kubectl: Kubectl, policy: str) -> None:
    kubectl("apply", "-f", "-", stdin=CLAIM)
    kubectl("delete", "resourceclaim", "gpu", f"--cascade={policy}", "--wait=false")
    finalizers = {"background": "", "foreground": '["foregroundDeletion"]', "orphan": '["orphan"]'}[policy]
    left = kubectl("get", "resourceclaim", "-o", "jsonpath={.items[*].metadata.finalizers}")
    assert left == finalizers


def test_what_one_may_do(kubectl: Kubectl, namespace: str) -> None:
    everything = kubectl("auth", "can-i", "--list").splitlines()
    assert everything[0].split() == ["Resources", "Non-Resource", "URLs", "Resource", "Names", "Verbs"]
    assert ["*.*", "[]", "[]", "[*]"] in [line.split() for line in everything]
    kubectl("create", "serviceaccount", "robot")
    kubectl("create", "role", "reader", "--verb=get,list", "--resource=pods", "--resource-name=one")
    kubectl("create", "rolebinding", "reads", "--role=reader", f"--serviceaccount={namespace}:robot")
    token = f"--token={kubectl('create', 'token', 'robot').strip()}"
    assert kubectl("auth", "can-i", "get", "pods/one", token) == "yes\n"
    assert kubectl("auth", "can-i", "get", "pods/two", token, fails=True).startswith("no")
    assert kubectl("auth", "can-i", "get", "/healthz", token) == "yes\n"
    lines = [line.split() for line in kubectl("auth", "can-i", "--list", token).splitlines()]
    assert ["pods", "[]", "[one]", "[get", "list]"] in lines
    refused = kubectl("get", "secrets", token, fails=True)
    account = f'User "system:serviceaccount:{namespace}:robot"'
    assert f'{account} cannot list resource "secrets" in API group "" in the namespace "{namespace}"' in refused


def test_roles_are_reconciled(kubectl: Kubectl, namespace: str) -> None:
    role = f"""\
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: reader, namespace: {namespace}}}
rules: [{{apiGroups: [""], resources: [pods], verbs: [VERBS]}}]
"""
    title = "role.rbac.authorization.k8s.io/reader reconciled"
    assert kubectl("auth", "reconcile", "-f", "-", stdin=role.replace("VERBS", "get, list")).startswith(title)
    assert kubectl("auth", "reconcile", "-f", "-", stdin=role.replace("VERBS", "watch")).startswith(title)
    rules = kubectl("get", "role", "reader", "-o", "jsonpath={.rules[*].verbs}")
    assert rules == '["get","list"] ["watch"]'


def test_wait_for_a_value(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "sized", "--image=registry.example/web:1", "--replicas=5")
    wait = ("wait", "deployment/sized", "--for=jsonpath={.spec.replicas}=5")
    assert kubectl(*wait, "--timeout=60s") == "deployment.apps/sized condition met\n"
