"""Go's quoted form."""

import pytest

from drachma.values import quotation


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("", '""', id="empty"),
        pytest.param("plain é", '"plain é"', id="plain"),
        pytest.param('a"b\\c', r'"a\"b\\c"', id="quotes-and-backslashes"),
        pytest.param("\a\b\f\n\r\t\v", r'"\a\b\f\n\r\t\v"', id="short-escapes"),
        pytest.param("\x00\x1b\x7f", r'"\x00\x1b\x7f"', id="control-characters"),
        pytest.param("\u00a0\u200b", r'"\u00a0\u200b"', id="spaces-that-do-not-print"),
        pytest.param("\U000e0001", r'"\U000e0001"', id="beyond-the-basic-plane"),
        pytest.param("🙂", '"🙂"', id="emoji"),
    ],
)
def test_quote(text: str, want: str) -> None:
    assert quotation.quote(text) == want
