"""Headers of answers."""

import pytest

from drachma.server.wire import responses


def values(*texts: str) -> list[str]:
    return [value.decode() for _, value in responses.warning_headers(texts)]


@pytest.mark.parametrize(
    ("texts", "want"),
    [
        pytest.param(["a", "b", "a", ""], ['299 - "a"', '299 - "b"'], id="each-once"),
        pytest.param(['say "\\"'], ['299 - "say \\"\\\\\\""'], id="quoted"),
        pytest.param(["a\r\nb: c"], ['299 - "a  b: c"'], id="one-line"),
        pytest.param(["x" * 4096], [f'299 - "{"x" * 4096}"'], id="as-long-as-allowed"),
        pytest.param(["x" * 4097], [f'299 - "{"x" * 256}"'], id="too-long"),
        pytest.param(["a", "x" * 4096], ['299 - "a"', f'299 - "{"x" * 256}"'], id="too-long-together"),
    ],
)
def test_warnings(texts: list[str], want: list[str]) -> None:
    assert values(*texts) == want


def test_warnings_that_do_not_fit_are_left_out() -> None:
    assert len(values(*(f"{number:0300}" for number in range(100)))) == 16
