"""Claims generated from templates."""

import pytest

from drachma.claims import templates


@pytest.mark.parametrize(
    ("owner", "entry", "want"),
    [
        pytest.param("p", "gpu", "p-gpu-", id="short"),
        pytest.param("a" * 50, "bcdef", "a" * 50 + "-bcdef-", id="just-fits"),
        pytest.param("a" * 80, "b" * 20, "a" * 44 + "-" + "b" * 11, id="both-are-cut-in-proportion"),
        pytest.param("a" * 100, "gpu", "a" * 54 + "-g", id="a-long-pod-name"),
    ],
)
def test_base_names(owner: str, entry: str, want: str) -> None:
    assert templates.base_name(owner, entry) == want
    assert len(want) <= 57
