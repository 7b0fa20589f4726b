"""Fields that recordings and dumps leave out."""

from msgspec import structs

from drachma.api import codec, pod
from drachma.scheduler.recording import essentials
from drachma.testing import node
from drachma.testing import pod as build_pod


def test_a_pod_keeps_what_it_asks_for_and_nothing_of_what_it_runs() -> None:
    made = build_pod("p").label("app", "web").container("c", requests={"cpu": "1"}).build()
    secret = {"command": ("run",), "args": ("--password=hush",), "env": (pod.EnvVar(name="TOKEN", value="hush"),)}
    containers = tuple(structs.replace(each, **secret) for each in made.spec.containers)
    annotations = {essentials.LAST_APPLIED: "hush", "other": "kept"}
    full = structs.replace(
        made,
        metadata=structs.replace(made.metadata, annotations=annotations),
        spec=structs.replace(made.spec, containers=containers, init_containers=containers),
    )
    bare = essentials.of(full)
    assert b"hush" in codec.encode_json(full)
    assert b"hush" not in codec.encode_json(bare)
    assert (bare.metadata.labels, bare.metadata.annotations) == ({"app": "web"}, {"other": "kept"})
    assert bare.spec.containers[0].resources == made.spec.containers[0].resources


def test_others_stay_as_they_are() -> None:
    made = node("n", labels={"a": "b"}).build()
    assert essentials.of(made) is made
