"""Rules about a resource hold for every version in which it is served, also for versions that are stored apart."""

import itertools
import random
import types
from typing import Any

import pytest

from drachma.api import gates
from drachma.server.access import authorization
from drachma.server.access.authorization import Attributes
from drachma.server.admission import noderestriction
from drachma.server.audit import policy
from drachma.server.authorisers import defaultroles, nodegraph
from drachma.server.authorisers.node import NodeAuthoriser
from drachma.server.kinds import builtin
from drachma.server.pipeline import phases, standardphases
from drachma.server.surface.apisurface import Kind
from drachma.server.user import User
from drachma.store import memory
from tests import firstalpha
from tests.unit.server import people

NODE = User(name="system:node:n1", groups=("system:nodes", "system:authenticated"))
KINDS = builtin.served(gates.Gates(frozenset(gates.Gate)))
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")


def _kinds(group_resource: str) -> list[Kind]:
    return [kind for kind in KINDS if kind.group_resource == group_resource]


def _phases() -> phases.Phases:
    return standardphases.make(
        memory.MemoryStore(),
        authoriser=authorization.AlwaysAllow(),
        gates=gates.ALL,
        rng=random.Random(7),
        disabled_plugins=(),
    )


STEPS = [step for phase in _phases().phases for step in phase.steps if step.of]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name.replace(" ", "-"))
def test_steps_name_resources_and_no_versions(step: phases.Step | phases.RemovalStep) -> None:
    """A name that no kind has would be a rule that is never applied."""
    assert {name for name in step.of if not _kinds(name)} == set()


def test_a_resource_may_be_stored_under_several_keys() -> None:
    """Otherwise the tests of this file would not try anything."""
    apart = {name for name in {kind.group_resource for kind in KINDS} if len(builtin.stored_keys(name)) > 1}
    slices, claims = "resource.k8s.io/resourceslices", "resource.k8s.io/resourceclaims"
    assert apart == {slices, claims, "resource.k8s.io/resourceclaimtemplates"}
    assert slices in noderestriction.KINDS
    assert set(builtin.stored_keys(slices)) == {slices, "resource.k8s.io/v1alpha2/resourceslices"}


@pytest.mark.parametrize("group_resource", sorted({name for step in STEPS for name in step.of}))
def test_a_step_is_taken_by_all_versions(group_resource: str) -> None:
    taken: list[Kind] = []

    def note(subject: Any) -> None:
        taken.append(subject.write.resource)

    of = frozenset({group_resource})
    steps = (phases.Step("written", note, of=of), phases.RemovalStep("removed", note, of=of))
    chosen = phases.Phases([phases.Phase("some", steps)], authoriser=authorization.AlwaysAllow())
    for kind in KINDS:
        subject: Any = types.SimpleNamespace(write=types.SimpleNamespace(resource=kind))
        chosen.run(phases.Operation.CREATE, subject)
        chosen.run_removal(subject)
    assert taken == [kind for kind in _kinds(group_resource) for _ in range(2)]


SLICE = {"driver": "d.example.com", "nodeName": "n2", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}


@pytest.mark.parametrize(
    ("kind", "version"),
    [
        pytest.param(kind, version, id=f"{kind.plural}.{version}")
        for name in (nodegraph.SLICES, nodegraph.NODE_SLICES)
        for kind in _kinds(name)
        for version in kind.versions
    ],
)
async def test_a_node_publishes_for_no_other_in_any_version(kind: Kind, version: str) -> None:
    server = await people.start(gates=firstalpha.GATES)
    content: dict[str, Any] = {
        "spec": SLICE if version != "v1alpha2" else {"nodeName": "n2", "driverName": "d.example.com"}
    }
    if kind.key == "resource.k8s.io/v1alpha2/resourceslices":
        content = {"nodeName": "n2", "driverName": "d.example.com"}
    path, slice_ = f"/apis/{kind.group}/{version}/{kind.plural}", {"metadata": {"name": "s"}, **content}
    refused = await server.showing("n1").call("POST", path, slice_)
    assert (refused.code, "can only create" in refused.body["message"]) == (403, True)
    assert (await server.showing("n2").call("POST", path, slice_)).code == 201
    assert (await server.showing("n1").call("DELETE", f"{path}/s")).code == 403
    await server.store.close()


POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"


@pytest.mark.parametrize(("match_policy", "want"), [("Equivalent", 422), ("Exact", 201)])
async def test_a_policy_about_v1_is_about_versions_that_are_stored_apart(match_policy: str, want: int) -> None:
    server = await people.start(gates=firstalpha.GATES)
    rule = {"apiGroups": ["resource.k8s.io"], "apiVersions": ["v1"], "operations": ["*"]}
    constraints = {"resourceRules": [{**rule, "resources": ["resourceslices"]}], "matchPolicy": match_policy}
    spec = {"matchConstraints": constraints, "validations": [{"expression": "object.?spec.hasValue()"}]}
    assert (await server.call("POST", f"{POLICIES}ies", {"metadata": {"name": "p"}, "spec": spec})).code == 201
    binding = {"policyName": "p", "validationActions": ["Deny"]}
    made = await server.call("POST", f"{POLICIES}ybindings", {"metadata": {"name": "b"}, "spec": binding})
    assert made.code == 201
    slice_ = {"metadata": {"name": "s"}, "nodeName": "n2", "driverName": "d.example.com"}
    assert (await server.call("POST", "/apis/resource.k8s.io/v1alpha2/resourceslices", slice_)).code == want
    await server.store.close()


async def test_the_node_authorizer_judges_all_versions_alike() -> None:
    store = memory.MemoryStore()
    authoriser = NodeAuthoriser(nodegraph.NodeGraph(store), defaultroles.read().rules("system:node"))
    for group_resource in authoriser._divided:
        served = [(kind, version) for kind in _kinds(group_resource) for version in kind.versions]
        assert served, group_resource
        for verb, name in itertools.product(VERBS, ("", "foreign")):
            opinions = {
                authoriser.authorise(
                    Attributes(
                        user=NODE,
                        verb=verb,
                        group=kind.group,
                        version=version,
                        resource=kind.plural,
                        namespace="lab" if kind.namespaced else "",
                        name=name,
                    )
                )
                for kind, version in served
            }
            assert len(opinions) == 1, (group_resource, verb, name)
    await store.close()


def test_all_versions_of_a_resource_that_a_node_is_related_to_are_followed() -> None:
    """An object whose versions are stored apart has an edge for each of them."""
    followed = nodegraph.NodeGraph(memory.MemoryStore())._follower._resources
    for resource in (nodegraph.PODS, nodegraph.SLICES, nodegraph.NODE_SLICES, nodegraph.VOLUMES):
        assert {kind.key for kind in _kinds(resource)} <= set(followed)


def test_what_is_secret_is_so_in_all_versions() -> None:
    """Audit policies know no versions at all."""
    for group, resource in policy.SENSITIVE:
        plural, _, below = resource.partition("/")
        (kind,) = _kinds(f"{group}/{plural}" if group else plural)
        assert not below or kind.subresource(below) is not None
