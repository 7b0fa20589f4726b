"""Names of images."""

import pytest

from drachma.values import imagename

DIGEST = "sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("image", "want"),
    [
        pytest.param("pause", "latest", id="a-name"),
        pytest.param("registry.example/a/b:1.2", "1.2", id="a-tag"),
        pytest.param("registry.example:5000/a", "latest", id="a-port-is-no-tag"),
        pytest.param("localhost/a", "latest", id="a-host-without-dots"),
        pytest.param("[::1]:5000/a:x", "x", id="an-address"),
        pytest.param(f"a@{DIGEST}", "", id="a-digest"),
        pytest.param(f"a:x@{DIGEST}", "x", id="a-tag-and-a-digest"),
        pytest.param("Upper", "", id="capitals"),
        pytest.param("Upper/a", "latest", id="capitals-of-a-host"),
        pytest.param("a b", "", id="a-space"),
        pytest.param("a:", "", id="no-tag"),
        pytest.param("0" * 64, "", id="an-identifier"),
        pytest.param("x" * 248, "", id="too-long-with-what-is-meant-before-it"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_tags(image: str, want: str) -> None:
    assert imagename.tag(image) == want
