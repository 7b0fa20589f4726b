"""The owner that is admitted in place of a job: the topmost one that is queued."""

from typing import Any

import pytest

from drachma.queueing.jobs import ancestry
from drachma.queueing.jobs.settings import Management


def _job(name: str, *, owner: str | None = None, queue: str = "", owner_uid: str = "") -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "uid": name, "labels": {"kueue.x-k8s.io/queue-name": queue}}
    if owner is not None:
        reference = {"apiVersion": "batch/v1", "kind": "Job", "name": owner, "uid": owner_uid or owner}
        metadata["ownerReferences"] = [{**reference, "controller": True}]
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata}


def _ancestor(*jobs: dict[str, Any], without_queue_name: bool = False) -> str | None:
    owners = {(each["apiVersion"], each["kind"], each["metadata"]["name"]): each for each in jobs}
    top = ancestry.ancestor(jobs[0], owners, Management(without_queue_name=without_queue_name))
    return None if top is None else top["metadata"]["name"]


@pytest.mark.parametrize(
    ("jobs", "name"),
    [
        pytest.param([_job("a")], None, id="no owner"),
        pytest.param([_job("a", owner="b"), _job("b", queue="q")], "b", id="an owner with a queue"),
        pytest.param([_job("a", owner="b"), _job("b")], None, id="an owner without one"),
        pytest.param(
            [_job("a", owner="b"), _job("b", owner="c", queue="q"), _job("c", queue="q")], "c", id="the topmost"
        ),
        pytest.param(
            [_job("a", owner="b"), _job("b", owner="c"), _job("c", queue="q")], "c", id="beyond one without a queue"
        ),
        pytest.param([_job("a", owner="b", owner_uid="old"), _job("b", queue="q")], None, id="another of that name"),
    ],
)
def test_ancestor(jobs: list[dict[str, Any]], name: str | None) -> None:
    assert _ancestor(*jobs) == name


def test_without_a_queue_name_owners_count_where_all_jobs_are_queued() -> None:
    assert _ancestor(_job("a", owner="b"), _job("b"), without_queue_name=True) == "b"


def test_owners_in_a_circle_are_refused() -> None:
    with pytest.raises(ancestry.AncestryError, match="cyclic ownership"):
        _ancestor(_job("a", owner="b"), _job("b", owner="a"))


def test_an_owner_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ancestry.AncestryError, match=r'jobs.batch "b" not found'):
        _ancestor(_job("a", owner="b"))


def test_too_many_owners_are_refused() -> None:
    chain = [_job(f"job-{number}", owner=f"job-{number + 1}") for number in range(12)]

    with pytest.raises(ancestry.NestingError):
        _ancestor(*chain, _job("job-12"))
