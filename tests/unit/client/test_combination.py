"""Commits that begin in the same turn of the event loop are made together, each with its own result."""

import asyncio
from collections.abc import Sequence

import pytest

from drachma import errors
from drachma.client import combination


class Server:
    """Takes commits of names; refuses those that begin with "bad"."""

    def __init__(self) -> None:
        self.commits: list[list[str]] = []

    async def commit(self, writes: Sequence[str]) -> Sequence[str]:
        self.commits.append(list(writes))
        await asyncio.sleep(0)
        for position, each in enumerate(writes):
            if each.startswith("lost"):
                raise errors.UnreachableError("no answer")
            if each.startswith("bad"):
                raise errors.CommitRefusedError(errors.ObjectConflictError({"message": f"refused {each}"}), position)
        return [f"{each} stored" for each in writes]


async def _run(*commits: Sequence[str]) -> tuple[list[list[str]], list[object]]:
    server = Server()
    combiner = combination.Combiner[str, str](server.commit, key_of=lambda write: write.partition(":")[0])
    answers = await asyncio.gather(*map(combiner.commit, commits), return_exceptions=True)
    return server.commits, list(answers)


@pytest.mark.parametrize(
    ("commits", "want_commits", "want_answers"),
    [
        pytest.param([["a"]], [["a"]], [["a stored"]], id="one"),
        pytest.param([["a", "b"], ["c"]], [["a", "b", "c"]], [["a stored", "b stored"], ["c stored"]], id="together"),
        pytest.param(
            [["a:1"], ["b"], ["a:2"], ["c"]],
            [["a:1", "b"], ["a:2", "c"]],
            [["a:1 stored"], ["b stored"], ["a:2 stored"], ["c stored"]],
            id="same-object-apart",
        ),
    ],
)
def test_commits_are_made_together(
    commits: list[list[str]], want_commits: list[list[str]], want_answers: list[list[str]]
) -> None:
    made, answers = asyncio.run(_run(*commits))
    assert made == want_commits
    assert answers == want_answers


def test_a_refusal_concerns_one_commit_only() -> None:
    made, answers = asyncio.run(_run(["a"], ["b", "bad"], ["c"]))
    assert made == [["a", "b", "bad", "c"], ["a"], ["b", "bad"], ["c"]]
    refusal = answers[1]
    assert isinstance(refusal, errors.CommitRefusedError)
    assert refusal.position == 1
    assert [answers[0], answers[2]] == [["a stored"], ["c stored"]]


def test_all_commits_fail_without_an_answer() -> None:
    made, answers = asyncio.run(_run(["a"], ["lost"]))
    assert made == [["a", "lost"]]
    assert [type(each) for each in answers] == [errors.UnreachableError, errors.UnreachableError]


def test_large_commits_stay_apart() -> None:
    many = [f"{number}" for number in range(combination.MOST_WRITES)]
    made, _ = asyncio.run(_run(many, ["a"], ["b"]))
    assert made == [many, ["a", "b"]]


def test_a_commit_that_nobody_waits_for_is_not_begun() -> None:
    async def run() -> list[list[str]]:
        server = Server()
        combiner = combination.Combiner[str, str](server.commit, key_of=str)
        combiner.commit(["a"]).cancel()
        assert await combiner.commit(["b"]) == ["b stored"]
        return server.commits

    assert asyncio.run(run()) == [["b"]]
