"""Positions and the frame around messages."""

import pytest

from drachma.cel import source


@pytest.mark.parametrize(
    ("text", "offset", "want"),
    [
        pytest.param("a + b", 4, "ERROR: <input>:1:5: bad\n | a + b\n | ....^", id="one-line"),
        pytest.param("a +\nbb + c", 9, "ERROR: <input>:2:6: bad\n | bb + c\n | .....^", id="second-line"),
        pytest.param("\tx", 1, "ERROR: <input>:1:2: bad\n |  x\n | .^", id="tab-shown-as-space"),
        pytest.param("'é' + x", 6, "ERROR: <input>:1:7: bad\n | 'é' + x\n | .．....^", id="wide-dot"),
        pytest.param("水", 0, "ERROR: <input>:1:1: bad\n | 水\n | ＾", id="wide-caret"),
        pytest.param("a", 1, "ERROR: <input>:1:2: bad\n | a\n | .^", id="at-the-end"),
        pytest.param("a", source.NOWHERE, "ERROR: <input>:-1:0: bad", id="nowhere"),
        pytest.param("", 0, "ERROR: <input>:1:0: bad", id="empty-source"),
        pytest.param("x" * 16385, 0, "ERROR: <input>:1:1: bad", id="line-too-long-to-show"),
    ],
)
def test_frame(text: str, offset: int, want: str) -> None:
    assert source.Source(text).report([source.Issue(offset, "bad")]) == want


def test_issues_are_reported_in_the_order_of_their_places() -> None:
    issues = [source.Issue(2, "second"), source.Issue(0, "first"), source.Issue(2, "third")]
    report = source.Source("abc").report(issues)
    assert [line.rpartition(" ")[2] for line in report.splitlines()[::3]] == ["first", "second", "third"]


def test_only_a_hundred_issues_are_shown() -> None:
    report = source.Source("a").report([source.Issue(0, "bad")] * 103)
    assert report.count("ERROR") == 100
    assert report.endswith("\n3 more errors were truncated")


def test_half_a_surrogate_pair_is_replaced() -> None:
    assert source.Source("'\ud800'").text == "'\ufffd'"
