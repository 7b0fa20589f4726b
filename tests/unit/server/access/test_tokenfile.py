"""Token files: what their lines say, and which are refused."""

import pathlib

import pytest

from drachma import errors
from drachma.server.access import tokenfile
from drachma.server.user import User


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("t1,ann,u1\n", {"t1": User(name="ann", uid="u1")}, id="no-groups"),
        pytest.param('t1,ann,u1,"a,b"\n', {"t1": User(name="ann", uid="u1", groups=("a", "b"))}, id="groups"),
        pytest.param("t1,ann,u1,\n", {"t1": User(name="ann", uid="u1")}, id="empty-groups"),
        pytest.param(",ann,u1\n\nt2,bob,u2,g,more\n", {"t2": User(name="bob", uid="u2", groups=("g",))}, id="skipped"),
        pytest.param("t,ann,u1\nt,bob,u2\n", {"t": User(name="bob", uid="u2")}, id="the-last-counts"),
    ],
)
def test_lines_are_users(tmp_path: pathlib.Path, text: str, want: dict[str, User]) -> None:
    path = tmp_path / "tokens.csv"
    path.write_text(text)
    assert tokenfile.read(path) == want


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"t,ann\n", "at least 3 columns", id="too-short"),
        pytest.param(b"t,\xff,u\n", "cannot be read", id="not-text"),
        pytest.param(b't,"ann,u\n', "cannot be read", id="no-closing-quote"),
    ],
)
def test_what_is_no_token_file_is_refused(tmp_path: pathlib.Path, data: bytes, message: str) -> None:
    path = tmp_path / "tokens.csv"
    path.write_bytes(data)
    with pytest.raises(errors.RefusedFileError, match=message):
        tokenfile.read(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(errors.RefusedFileError, match="No such file"):
        tokenfile.read(tmp_path / "tokens.csv")
