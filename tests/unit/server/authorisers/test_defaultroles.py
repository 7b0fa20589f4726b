"""The default roles, compared with those of a fresh cluster."""

import json
from typing import Any

import pytest

from drachma.server.authorisers import defaultroles
from tests.conformance import vectors

OWN = {"drachma:dra-driver", "system:controller:structured-parameters-controller"}
"""Roles that upstream does not have."""

SLICE_VERBS = '"create" "delete" "get" "list" "patch" "update" "watch"'


def _recorded(kind: str) -> dict[tuple[str, str], dict[str, Any]]:
    path = vectors.folder().parent / "policy" / "rbac-bootstrap.json"
    if not path.is_file():
        pytest.skip(vectors.required(path))
    return {_place(each): each for each in json.loads(path.read_text(encoding="utf-8"))[kind]}


def _place(document: dict[str, Any]) -> tuple[str, str]:
    metadata = document["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def _plain(document: dict[str, Any]) -> dict[str, Any]:
    """A document as the recording has it; rules of aggregated roles are a controller's to write."""
    content = {field: value for field, value in document.items() if field not in ("apiVersion", "kind") and value}
    return {**content, "rules": []} if "aggregationRule" in document else content


@pytest.mark.parametrize(
    ("kind", "recorded"),
    [
        pytest.param("ClusterRole", "clusterroles", id="cluster-roles"),
        pytest.param("Role", "roles", id="roles"),
        pytest.param("ClusterRoleBinding", "clusterrolebindings", id="cluster-role-bindings"),
        pytest.param("RoleBinding", "rolebindings", id="role-bindings"),
    ],
)
def test_as_in_a_fresh_cluster(kind: str, recorded: str) -> None:
    defaults = defaultroles.read()
    own = [each for each in (*defaults.roles, *defaults.bindings) if each["kind"] == kind]
    got = {_place(each): _plain(each) for each in own if each["metadata"]["name"] not in OWN}
    assert got == {place: _plain(each) for place, each in _recorded(recorded).items()}


def test_a_driver_may_do_what_the_kep_lists() -> None:
    assert [str(rule) for rule in defaultroles.read().rules("drachma:dra-driver")] == [
        f'{{APIGroups:["resource.k8s.io"], Resources:["resourceslices"], Verbs:[{SLICE_VERBS}]}}',
        '{APIGroups:["resource.k8s.io"], Resources:["resourceclaims"], Verbs:["get"]}',
        '{APIGroups:[""], Resources:["nodes"], Verbs:["get"]}',
    ]


def test_a_role_that_there_is_not() -> None:
    with pytest.raises(KeyError):
        defaultroles.read().rules("system:nobody")
