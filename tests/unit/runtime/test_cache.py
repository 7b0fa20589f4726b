"""The memory of an informer and its indexes."""

import pytest
from msgspec import structs

from drachma import errors
from drachma.api import pod
from drachma.runtime import cache
from drachma.testing import pod as build_pod


def placed(name: str, *, node: str = "", namespace: str = "default") -> pod.Pod:
    built = build_pod(name).build()
    metadata = structs.replace(built.metadata, namespace=namespace)
    return structs.replace(built, metadata=metadata, spec=structs.replace(built.spec, node_name=node))


def by_node(known: pod.Pod) -> tuple[str, ...]:
    return (known.spec.node_name,) if known.spec.node_name else ()


def names(found: tuple[pod.Pod, ...]) -> list[str]:
    return [each.metadata.name for each in found]


@pytest.fixture
def pods() -> cache.Cache[pod.Pod]:
    pod_cache: cache.Cache[pod.Pod] = cache.Cache()
    pod_cache.add_index("node", by_node)
    return pod_cache


def test_put_get_and_drop(pods: cache.Cache[pod.Pod]) -> None:
    first, second = placed("a"), placed("a", node="n")
    assert pods.put(first) is None
    assert pods.put(second) is first
    assert pods.get("a", namespace="default") is second
    assert pods.get("a", namespace="other") is None
    assert pods.drop(first) is second
    assert pods.drop(first) is None
    assert pods.list_namespace("default") == ()
    assert len(pods) == 0
    assert not pods


def test_namespaces(pods: cache.Cache[pod.Pod]) -> None:
    for namespace, name in (("one", "a"), ("two", "b"), ("one", "c")):
        pods.put(placed(name, namespace=namespace))
    assert names(pods.list_namespace("one")) == ["a", "c"]
    assert pods.list_namespace("three") == ()


def test_an_index_follows_changes(pods: cache.Cache[pod.Pod]) -> None:
    pods.put(placed("a"))
    pods.put(placed("b", node="n1"))
    pods.put(placed("a", node="n1"))
    assert sorted(names(pods.by("node", "n1"))) == ["a", "b"]
    pods.put(placed("b", node="n2"))
    assert (names(pods.by("node", "n1")), names(pods.by("node", "n2"))) == (["a"], ["b"])
    pods.drop(placed("a"))
    assert pods.by("node", "n1") == ()
    assert pods.values("node") == ("n2",)


def test_an_index_has_the_newest_object(pods: cache.Cache[pod.Pod]) -> None:
    pods.put(placed("a", node="n"))
    newer = placed("a", node="n")
    pods.put(newer)
    assert pods.by("node", "n")[0] is newer


def test_a_late_index_has_what_is_there(pods: cache.Cache[pod.Pod]) -> None:
    pods.put(placed("a", node="n"))
    pods.add_index("initial", lambda known: [known.metadata.name[:1]])
    assert names(pods.by("initial", "a")) == ["a"]


def test_several_values_of_one_object(pods: cache.Cache[pod.Pod]) -> None:
    pods.add_index("letter", lambda known: known.metadata.name)
    pods.put(placed("ab"))
    pods.put(placed("bcb"))
    assert names(pods.by("letter", "b")) == ["ab", "bcb"]
    pods.drop(placed("bcb"))
    assert pods.values("letter") == ("a", "b")


def test_unknown_and_taken_names_of_indexes(pods: cache.Cache[pod.Pod]) -> None:
    with pytest.raises(errors.InvalidValueError, match="index 'nod' does not exist: there are node"):
        pods.by("nod", "n")
    with pytest.raises(errors.InvalidValueError, match="index 'node' exists already"):
        pods.add_index("node", by_node)


def test_iterating_is_not_disturbed_by_changes(pods: cache.Cache[pod.Pod]) -> None:
    pods.put(placed("a"))
    pods.put(placed("b"))
    for cached in pods:
        pods.drop(cached)
    assert len(pods) == 0
