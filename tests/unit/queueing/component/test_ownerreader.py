"""Owners of jobs: read as far up as queueing knows their kinds."""

from typing import Any, cast

from drachma import errors
from drachma.client import Client, target
from drachma.queueing.component.ownerreader import OwnerReader


class _Client:
    """Has objects by kind and name, and counts reads."""

    def __init__(self, *objects: dict[str, Any]) -> None:
        self._objects = {(each["kind"], each["metadata"]["name"]): each for each in objects}
        self.reads: list[str] = []

    async def get_document(self, kind: target.Target[Any], name: str, *, namespace: str) -> dict[str, Any]:
        self.reads.append(f"{kind.qualified} {namespace}/{name}")
        document = self._objects.get((kind.kind, name))
        if document is None:
            raise errors.ObjectNotFoundError({"message": "not found"})
        return document


def _object(
    kind: str, name: str, *, api_version: str = "batch/v1", owner: dict[str, Any] | None = None
) -> dict[str, Any]:
    references = [{**_reference(owner), "controller": True}] if owner is not None else []
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "ownerReferences": references}}


def _reference(owner: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"]}


async def _read(client: _Client, document: dict[str, Any]) -> list[str]:
    owners = await OwnerReader(cast(Client, client)).read(document, "ns")
    return [name for _, _, name in owners]


async def test_an_object_without_owners_costs_no_read() -> None:
    client = _Client()

    assert await _read(client, _object("Job", "train")) == []
    assert client.reads == []


async def test_the_chain_is_read_up_to_an_unknown_kind() -> None:
    unknown = _object("Pipeline", "p", api_version="example.com/v1")
    job_set = _object("JobSet", "set", api_version="jobset.x-k8s.io/v1alpha2", owner=unknown)
    client = _Client(job_set, unknown)

    assert await _read(client, _object("Job", "train", owner=job_set)) == ["set"]
    assert client.reads == ["jobsets.jobset.x-k8s.io ns/set"]


async def test_a_missing_owner_ends_the_chain() -> None:
    gone = _object("Job", "gone")

    assert await _read(_Client(), _object("Job", "train", owner=gone)) == []
