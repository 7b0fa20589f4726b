"""Strategic merge patch: merge keys, directives and orders on the kinds that users patch."""

from typing import Any

import pytest

from drachma.server.patch import listorder, strategic
from tests.unit import typefiles
from tests.unit.server import served

POD = served.schema("v1", "Pod")
DEPLOYMENT = served.schema("apps/v1", "Deployment")


def _containers(*containers: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"containers": list(containers)}}


@pytest.mark.parametrize(
    ("document", "patch", "want"),
    [
        pytest.param(
            _containers({"name": "a", "image": "1"}, {"name": "b", "image": "1"}),
            _containers({"name": "b", "image": "2"}),
            _containers({"name": "a", "image": "1"}, {"name": "b", "image": "2"}),
            id="container-by-name",
        ),
        pytest.param(
            _containers({"name": "a"}),
            _containers({"name": "b"}),
            _containers({"name": "b"}, {"name": "a"}),
            id="new-items-come-first",
        ),
        pytest.param(
            _containers({"name": "a"}, {"name": "b"}),
            _containers({"name": "a", "$patch": "delete"}),
            _containers({"name": "b"}),
            id="delete-an-item",
        ),
        pytest.param(
            _containers({"name": "a"}, {"name": "b"}),
            _containers({"$patch": "replace"}, {"name": "c"}),
            _containers({"name": "c"}),
            id="replace-a-list",
        ),
        pytest.param(
            _containers({"name": "a", "env": [{"name": "X", "value": "1"}], "command": ["a"]}),
            _containers({"name": "a", "env": [{"name": "Y", "value": "2"}], "command": ["b"]}),
            _containers(
                {"name": "a", "env": [{"name": "Y", "value": "2"}, {"name": "X", "value": "1"}], "command": ["b"]}
            ),
            id="keyed-list-merges-and-atomic-list-does-not",
        ),
        pytest.param(
            {"spec": {"tolerations": [{"key": "a"}]}},
            {"spec": {"tolerations": [{"key": "b"}]}},
            {"spec": {"tolerations": [{"key": "b"}]}},
            id="tolerations-are-replaced",
        ),
        pytest.param(
            {"metadata": {"finalizers": ["a", "b"]}},
            {"metadata": {"finalizers": ["c"], "$deleteFromPrimitiveList/finalizers": ["a"]}},
            {"metadata": {"finalizers": ["c", "b"]}},
            id="finalizers-are-a-set",
        ),
        pytest.param(
            {"metadata": {"labels": {"a": "1", "b": "2"}}},
            {"metadata": {"labels": {"a": None, "c": "3"}}},
            {"metadata": {"labels": {"b": "2", "c": "3"}}},
            id="null-removes",
        ),
        pytest.param(
            {"metadata": {"labels": {"a": "1"}}},
            {"metadata": {"labels": {"$patch": "replace", "b": "2"}}},
            {"metadata": {"labels": {"b": "2"}}},
            id="replace-a-map",
        ),
        pytest.param(
            _containers({"name": "a"}, {"name": "b"}, {"name": "c"}),
            {
                "spec": {
                    "containers": [{"name": "a", "image": "2"}],
                    "$setElementOrder/containers": [{"name": "c"}, {"name": "a"}],
                }
            },
            _containers({"name": "b"}, {"name": "c"}, {"name": "a", "image": "2"}),
            id="set-the-order",
        ),
        pytest.param(
            {"status": {"hostIPs": [{"ip": "1"}]}},
            {"status": {"hostIPs": [{"ip": "2"}]}},
            {"status": {"hostIPs": [{"ip": "2"}, {"ip": "1"}]}},
            id="atomic-for-apply-merged-by-patches",
        ),
    ],
)
def test_pods(document: dict[str, Any], patch: dict[str, Any], want: dict[str, Any]) -> None:
    before = repr((document, patch))
    assert strategic.apply(document, patch, schema=POD) == want
    assert repr((document, patch)) == before


def test_an_object_that_is_replaced_whole() -> None:
    whole = {"a": "string", "b": "string"}
    types = typefiles.load("p", {"Whole": whole, "Owner": {"whole": {"type": "Whole", "patch": "replace"}}})
    merged = strategic.apply({"whole": {"a": "1"}}, {"whole": {"b": "2"}}, schema=types.get("p/v1.Owner"))
    assert merged == {"whole": {"b": "2"}}


def test_retain_keys_drops_what_is_not_listed() -> None:
    document = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert strategic.apply(document, patch, schema=DEPLOYMENT) == {"spec": {"strategy": {"type": "Recreate"}}}


@pytest.mark.parametrize(
    ("patch", "error", "want"),
    [
        pytest.param(
            {"spec": {"strategy": {"$retainKeys": [], "type": "Recreate"}}},
            strategic.MalformedError,
            "invalid patch format of retainKeys",
            id="retained-keys-miss-one",
        ),
        pytest.param(
            {"spec": {"$setElementOrder": []}},
            strategic.MalformedError,
            "invalid patch format of setElementOrder list",
            id="order-without-field",
        ),
        pytest.param(
            {"metadata": {"finalizers": [["a"]]}},
            listorder.NotMergeableError,
            r"list element types are not identical: \[\[x\] \[\[a\]\]\]",
            id="mixed-items",
        ),
        pytest.param(
            {"spec": {"template": {"spec": {"containers": [{"image": "x"}]}}}},
            listorder.NotMergeableError,
            r"map: map\[image:x\] does not contain declared merge key: name",
            id="no-merge-key",
        ),
        pytest.param(
            {"spec": {"bogus": {"a": 1}}},
            listorder.NotMergeableError,
            'unable to find api field in struct DeploymentSpec for the json field "bogus"',
            id="unknown-field",
        ),
        pytest.param(
            {"spec": {"strategy": {"$patch": "frob"}}},
            listorder.NotMergeableError,
            r"unknown patch type: frob in map: map\[\$patch:frob\]",
            id="unknown-directive",
        ),
        pytest.param(
            {"metadata": {"$setElementOrder/finalizers": ["a"], "finalizers": ["b"]}},
            listorder.NotMergeableError,
            r"The order in patch list:\n\[b\]\n doesn't match \$setElementOrder list:\n\[a\]\n",
            id="order-misses-an-item",
        ),
    ],
)
def test_refusals(patch: dict[str, Any], error: type[Exception], want: str) -> None:
    document = {
        "metadata": {"finalizers": ["x"]},
        "spec": {
            "strategy": {"type": "RollingUpdate"},
            "bogus": {},
            "template": {"spec": {"containers": [{"name": "a"}]}},
        },
    }
    with pytest.raises(error, match=want):
        strategic.apply(document, patch, schema=DEPLOYMENT)


def test_maps_of_objects_cannot_be_merged() -> None:
    document: dict[str, Any] = {"spec": {}, "metadata": {}}
    slice_ = served.schema("resource.k8s.io/v1beta1", "ResourceSlice")
    assert strategic.apply(document, {"spec": {"driver": "d"}}, schema=slice_)["spec"]["driver"] == "d"
    device = {"attributes": {"a": {"int": 1}}}
    element = slice_.fields["spec"].type.fields["devices"].type.element.fields["basic"].type  # type: ignore[union-attr]
    with pytest.raises(listorder.NotMergeableError, match="data type is not struct, instead is: map"):
        strategic.apply(device, {"attributes": {"a": {"int": 2}}}, schema=element)  # type: ignore[arg-type]
