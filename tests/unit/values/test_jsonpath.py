"""JSONPath as printer columns write it."""

from typing import Any

import pytest

from drachma import errors
from drachma.values import jsonpath

DOCUMENT = {
    "a": {"b.c": 1, "list": [{"type": "Ready", "status": "True", "n": 3}, {"type": "Other", "status": "False"}]},
    "z": None,
}


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(".a.list[0].type", ["Ready"], id="position"),
        pytest.param(".a.list[-1].type", ["Other"], id="from-the-end"),
        pytest.param(".a.list[7].type", [], id="out-of-range"),
        pytest.param(".a.list[*].type", ["Ready", "Other"], id="everything"),
        pytest.param(".a.list[0:1].type", ["Ready"], id="slice"),
        pytest.param(".a.list[0,1].status", ["True", "False"], id="union"),
        pytest.param('.a.list[?(@.type=="Ready")].status', ["True"], id="filter"),
        pytest.param(".a.list[?(@.type != 'Ready')].status", ["False"], id="filter-unequal"),
        pytest.param(".a.list[?(@.n > 2)].type", ["Ready"], id="filter-number"),
        pytest.param(".a.list[?(@.n)].type", ["Ready"], id="filter-presence"),
        pytest.param(r".a.b\.c", [1], id="escaped-dot"),
        pytest.param(".a['b.c']", [1], id="quoted"),
        pytest.param("..type", ["Ready", "Other"], id="anywhere"),
        pytest.param(".nothing.there", [], id="absent"),
        pytest.param(".z", [None], id="null"),
    ],
)
def test_find(text: str, want: list[Any]) -> None:
    assert jsonpath.parse(text).find(DOCUMENT) == want


@pytest.mark.parametrize("text", ["a", ".a[", ".a[x]", ".a[?(x)]", ".a[?(@.b == c)]", ".a b", "." + "a" * 5000])
def test_refused(text: str) -> None:
    with pytest.raises(errors.InvalidValueError):
        jsonpath.parse(text)
