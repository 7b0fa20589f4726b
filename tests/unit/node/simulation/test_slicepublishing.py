"""Slices that simulated drivers create, replace and delete."""

from collections.abc import Sequence
from typing import Any

import pytest

from drachma.api import codec, resourceslice
from drachma.node.simulation import slicepublishing


def _slice(name: str, *devices: str, pool: str = "n") -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": "d.example.com",
            "nodeName": "n",
            "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": device} for device in devices],
        },
    }


def _stored(document: dict[str, Any], *, version: str = "7") -> resourceslice.ResourceSlice:
    metadata = {**document["metadata"], "resourceVersion": version}
    decoded = codec.decode({**document, "metadata": metadata})
    assert isinstance(decoded, resourceslice.ResourceSlice)
    return decoded


def _publish(desired: Sequence[dict[str, Any]], *, salt: str = "") -> list[resourceslice.ResourceSlice]:
    return [_stored(each) for each in slicepublishing.plan(desired, [], salt=salt).creations]


def _generations(documents: Sequence[dict[str, Any]]) -> dict[str, int]:
    return {each["metadata"]["name"]: each["spec"]["pool"]["generation"] for each in documents}


def test_all_is_created_at_first() -> None:
    result = slicepublishing.plan([_slice("a", "x"), _slice("b", "y", pool="other")], [])
    assert _generations(result.creations) == {"a": 1, "b": 1}
    assert not result.replacements
    assert not result.deletions


def test_nothing_is_done_twice() -> None:
    desired = [_slice("a", "x"), _slice("b", "y")]
    assert not any(slicepublishing.plan(desired, _publish(desired)))


def test_a_slice_that_is_missing_joins_its_pool() -> None:
    desired = [_slice("a", "x"), _slice("b", "y")]
    first, _ = _publish(desired)
    result = slicepublishing.plan(desired, [first])
    assert _generations(result.creations) == {"b": 1}
    assert not result.replacements


@pytest.mark.parametrize(
    ("desired", "salt"),
    [
        pytest.param([_slice("a", "x"), _slice("b", "z")], "", id="other-devices"),
        pytest.param([_slice("a", "x"), _slice("b", "y")], "gate", id="other-gates"),
    ],
)
def test_a_pool_that_changes_gets_one_new_generation(desired: list[dict[str, Any]], salt: str) -> None:
    stored_slices = _publish([_slice("a", "x"), _slice("b", "y")])
    result = slicepublishing.plan(desired, stored_slices, salt=salt)
    assert _generations(result.replacements) == {"a": 2, "b": 2}
    assert {each["metadata"]["resourceVersion"] for each in result.replacements} == {"7"}
    assert not result.creations


def test_slices_that_machines_no_longer_have_go() -> None:
    stored_slices = _publish([_slice("a", "x"), _slice("b", "y")])
    result = slicepublishing.plan([_slice("c", "x")], stored_slices)
    assert result.deletions == ["a", "b"]
    assert _generations(result.creations) == {"c": 2}, "newer than what goes"


def test_what_people_change_in_a_slice_stays() -> None:
    desired = [_slice("a", "x", "y")]
    (published,) = slicepublishing.plan(desired, []).creations
    published["spec"] = {**published["spec"], "devices": [{"name": "y"}]}
    assert not any(slicepublishing.plan(desired, [_stored(published)]))


def test_annotations_of_people_outlast_a_replacement() -> None:
    (published,) = slicepublishing.plan([_slice("a", "x")], []).creations
    published["metadata"]["annotations"]["simulation.drachma.dev/flap-seconds"] = "3"
    (replaced,) = slicepublishing.plan([_slice("a", "y")], [_stored(published)]).replacements
    assert replaced["metadata"]["annotations"]["simulation.drachma.dev/flap-seconds"] == "3"


def test_a_slice_from_before_slices_were_marked_is_replaced() -> None:
    (replaced,) = slicepublishing.plan([_slice("a", "x")], [_stored(_slice("a", "x"))]).replacements
    assert replaced["spec"]["pool"]["generation"] == 2
