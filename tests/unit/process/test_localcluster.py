"""Records of clusters: which are running, and where they are."""

import os
import pathlib

import pytest
from msgspec import structs

from drachma import errors
from drachma.process import localcluster

RECORD = localcluster.Record(
    name="drachma",
    process=os.getpid(),
    process_started=localcluster.process_start(os.getpid()),
    server="https://127.0.0.1:6443",
)


def test_a_record_is_read_as_it_was_written(tmp_path: pathlib.Path) -> None:
    assert localcluster.read(tmp_path) is None
    localcluster.write(tmp_path / "new", RECORD)
    assert localcluster.read(tmp_path / "new") == RECORD


@pytest.mark.parametrize(
    ("change", "want"),
    [
        pytest.param({}, True, id="alive"),
        pytest.param({"process": 2**22 + 1}, False, id="gone"),
        pytest.param({"process_started": "1"}, False, id="another-process-with-its-number"),
    ],
)
def test_running(change: dict[str, object], want: bool) -> None:
    assert structs.replace(RECORD, **change).is_running is want


def test_a_damaged_record_is_named(tmp_path: pathlib.Path) -> None:
    (tmp_path / localcluster.RECORD).write_text("{")
    with pytest.raises(errors.RefusedFileError, match=r"cluster\.json: cannot be read"):
        localcluster.read(tmp_path)


def test_places_and_names(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert localcluster.folder("a") == tmp_path / "drachma" / "clusters" / "a"
    assert localcluster.folder("a", tmp_path) == tmp_path
    assert localcluster.root({}, home=tmp_path) == tmp_path / ".local" / "state" / "drachma" / "clusters"
    assert localcluster.context_name("drachma") == "drachma"
    assert localcluster.context_name("b") == "drachma-b"
    localcluster.write(localcluster.folder("b"), structs.replace(RECORD, name="b"))
    assert [record.name for _, record in localcluster.every()] == ["b"]


def test_only_folders_of_clusters_are_deleted(tmp_path: pathlib.Path) -> None:
    with pytest.raises(errors.RefusedFileError, match="is not deleted"):
        localcluster.delete(tmp_path)
    localcluster.write(tmp_path / "a", RECORD)
    localcluster.delete(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []
