"""The checkpoint: the kubelet's bytes, nothing lost, and damaged files put aside."""

import errno
import json
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drachma import errors
from drachma.node.claims import checkpoint
from drachma.node.claims.preparedclaims import Device, DriverState, Key, PreparedClaim, PreparedClaims

_TEXT = st.text(max_size=8)
_DEVICES = st.builds(
    Device,
    pool_name=_TEXT,
    device_name=_TEXT,
    share_id=st.none() | _TEXT,
    request_names=st.lists(_TEXT, max_size=2).map(tuple),
    cdi_device_ids=st.lists(_TEXT, max_size=2).map(tuple),
)
_STATES = st.builds(DriverState, st.lists(_DEVICES, max_size=2).map(tuple), st.sampled_from([(), ("*",)]))
_RECORDS = st.builds(
    PreparedClaim,
    uid=_TEXT,
    key=st.builds(Key, _TEXT, _TEXT),
    pods=st.frozensets(_TEXT, max_size=3),
    drivers=st.dictionaries(_TEXT, _STATES, max_size=2),
)


@given(st.lists(_RECORDS, max_size=4))
def test_what_is_written_is_read_back(records: list[PreparedClaim]) -> None:
    claims = PreparedClaims(records)
    content = checkpoint.encode(claims)
    assert list(checkpoint.decode(content)) == list(claims)
    assert checkpoint.encode(checkpoint.decode(content)) == content


def test_texts_are_escaped_as_by_go() -> None:
    claims = PreparedClaims([PreparedClaim(uid="<&>\u2028", key=Key("ns", "c"))])
    data = json.loads(checkpoint.encode(claims))["Data"]
    assert r"\u003c\u0026\u003e\u2028" in data


def _file(data: str, *, checksum: int | None = None) -> bytes:
    return json.dumps({"Data": data, "Checksum": zlib.crc32(data.encode()) if checksum is None else checksum}).encode()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(b"", "not a checkpoint", id="empty"),
        pytest.param(b"garbage", "not a checkpoint", id="garbage"),
        pytest.param(b'{"Data":"{', "not a checkpoint", id="cut-off"),
        pytest.param(_file("x"), "not a checkpoint", id="data-garbage"),
        pytest.param(_file("{}"), "unsupported checkpoint: - of -", id="without-a-kind"),
        pytest.param(
            _file('{"kind":"DRACheckpoint","apiVersion":"checkpoint.dra.kubelet.k8s.io/v9"}'),
            "unsupported checkpoint: DRACheckpoint of checkpoint.dra.kubelet.k8s.io/v9",
            id="from-the-future",
        ),
        pytest.param(
            _file('{"kind":"DRACheckpoint","apiVersion":"checkpoint.dra.kubelet.k8s.io/v1"}', checksum=1),
            "checksum does not fit",
            id="flipped-bit",
        ),
    ],
)
def test_damaged_files_are_put_aside(tmp_path: Path, content: bytes, problem: str) -> None:
    with pytest.raises(errors.DecodeError, match=problem):
        checkpoint.decode(content)
    file = checkpoint.Checkpoint(tmp_path)
    for number in (1, 2):
        file.path.write_bytes(content)
        claims, damage = file.load()
        assert not list(claims)
        assert problem in damage
        assert (tmp_path / f"{checkpoint.NAME}.damaged-{number}").read_bytes() == content
    assert file.load()[1] == ""


def test_a_link_is_put_aside_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("precious")
    file = checkpoint.Checkpoint(tmp_path)
    file.path.symlink_to(tmp_path / "elsewhere")
    claims, damage = file.load()
    assert not list(claims)
    assert damage == f"{file.path}: not a regular file; put aside as {checkpoint.NAME}.damaged-1"
    assert (tmp_path / "elsewhere").read_text() == "precious"


def test_an_interrupted_save_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = checkpoint.Checkpoint(tmp_path)
    file.save(PreparedClaims([PreparedClaim(uid="u", key=Key("ns", "c"))]))
    before = file.path.read_bytes()

    def fail(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(errors.NodeError, match=r"write checkpoint .*: No space left on device"):
        file.save(PreparedClaims())
    assert file.path.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [checkpoint.NAME]
