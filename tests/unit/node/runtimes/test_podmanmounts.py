"""Mounts in podman's words: no path is taken for options."""

import pytest

from drachma import errors
from drachma.node.runtimes import podmanmounts


def test_a_mount() -> None:
    assert podmanmounts.words("/a,b=c", "/x y", "ro") == ["--volume", "/a,b=c:/x y:ro"]
    assert podmanmounts.words("/a", "/b", "") == ["--volume", "/a:/b"]


@pytest.mark.parametrize(
    ("source", "target", "want"),
    [
        pytest.param("/a", "/x:exec,suid,dev", "mount path '/x:exec,suid,dev': must not contain ':'", id="target"),
        pytest.param("/a:/b", "/x", "mount path '/a:/b': must not contain ':'", id="source"),
        pytest.param("name", "/x", "mount path 'name': must be absolute", id="volume-of-podman"),
        pytest.param("/a", "", "mount path '': must be absolute", id="nowhere"),
    ],
)
def test_paths_that_podman_would_take_apart(source: str, target: str, want: str) -> None:
    with pytest.raises(errors.InvalidValueError) as refused:
        podmanmounts.words(source, target, "rw")
    assert str(refused.value) == want
