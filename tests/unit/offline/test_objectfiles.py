"""Objects from files: duplicates and missing names are reported with their place."""

import pathlib

import pytest

from drachma.api import codec
from drachma.offline import manifestfiles, objectfiles

CLAIM = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {}\n"


def claim(**metadata: str) -> str:
    return CLAIM.format(str(metadata))


def read(folder: pathlib.Path, *texts: str) -> tuple[list[str], list[str]]:
    """Return the namespaces and names of the objects, and the problems without the folder."""
    for number, text in enumerate(texts):
        (folder / f"{number}.yaml").write_text(text, encoding="utf-8")
    files = objectfiles.ObjectFiles()
    found: list[str] = []

    def take(source: manifestfiles.Source) -> None:
        accepted = files.accept(source, codec.decode(source.content), namespaced=True)
        found.append(f"{accepted.metadata.namespace}/{accepted.metadata.name}")

    files.read([str(folder)], take)
    return found, [problem.replace(f"{folder}/", "") for problem in files.problems]


def test_objects_get_the_default_namespace(tmp_path: pathlib.Path) -> None:
    assert read(tmp_path, claim(name="a"), claim(name="a", namespace="b")) == (["default/a", "b/a"], [])


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        pytest.param(
            claim(name="a"),
            "1.yaml: document 1: ResourceClaim a: is given twice, first in 0.yaml: document 1",
            id="twice",
        ),
        pytest.param(
            claim(name="a", namespace="default"),
            "1.yaml: document 1: ResourceClaim default/a: is given twice, first in 0.yaml: document 1",
            id="twice-in-the-default-namespace",
        ),
        pytest.param(
            claim(), "1.yaml: document 1: ResourceClaim (unnamed): metadata.name: required", id="without-a-name"
        ),
    ],
)
def test_problems_have_a_place(tmp_path: pathlib.Path, second: str, problem: str) -> None:
    found, problems = read(tmp_path, claim(name="a"), second)
    assert found == ["default/a"]
    assert problems == [problem]
