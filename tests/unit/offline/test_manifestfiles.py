"""Documents of files and folders: in order, with the place of each, and problems as values."""

import pathlib

import pytest

from drachma import errors
from drachma.offline import manifestfiles

TWO = "kind: A\n---\nkind: B\n"


def test_files_of_a_folder_come_in_order_and_others_are_passed_over(tmp_path: pathlib.Path) -> None:
    (tmp_path / "b.yaml").write_text(TWO)
    (tmp_path / "a.json").write_text('{"kind": "First"}')
    (tmp_path / "notes.txt").write_text("kind: No")
    sources = manifestfiles.read_all([str(tmp_path)])
    assert [source.content["kind"] for source in sources] == ["First", "A", "B"]
    assert sources[2].place == f"{tmp_path}/b.yaml: document 2"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(
            "apiVersion: v1\nkind: List\nitems: [{kind: A}, {kind: B}]", [{"kind": "A"}, {"kind": "B"}], id="any-kinds"
        ),
        pytest.param(
            "apiVersion: v1\nkind: PodList\nitems: [{metadata: {name: p}}]",
            [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}],
            id="members-inherit-their-kind",
        ),
        pytest.param("kind: List\nitems: []", [], id="empty"),
    ],
)
def test_lists_stand_for_their_members(tmp_path: pathlib.Path, text: str, want: list[object]) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(text)
    assert [source.content for source in manifestfiles.read_all([str(path)])] == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("a: [", "not YAML", id="not-yaml"),
        pytest.param("kind: PodList\nitems: 7", "items: expected a list, found number 7", id="items-are-no-list"),
        pytest.param("x: " + "y" * 100, "has 103 bytes: must have at most 50", id="too-large"),
    ],
)
def test_problems_are_values(tmp_path: pathlib.Path, text: str, want: str) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(text)
    (problem,) = manifestfiles.read([str(path)], max_bytes=50)
    assert isinstance(problem, manifestfiles.Unreadable)
    assert want in str(problem)


def test_a_folder_without_manifests_and_a_missing_file(tmp_path: pathlib.Path) -> None:
    with pytest.raises(errors.DecodeError, match="the folder has no manifest"):
        manifestfiles.read_all([str(tmp_path)])
    with pytest.raises(errors.DecodeError, match="No such file"):
        manifestfiles.read_all([str(tmp_path / "missing.yaml")])
