"""YAML bodies: repeated keys are told to strict readers only, and syntax errors have upstream's words."""

import pytest

from drachma import errors
from drachma.server.decoding import yamlsyntax


def test_the_last_of_repeated_keys_counts() -> None:
    found = yamlsyntax.read(b"a: 1\nb:\n  c: 1\n  c: 2\na: 3\n")
    assert found.content == {"a": 3, "b": {"c": 2}}
    assert found.problems == (
        'yaml: unmarshal errors:\n  line 5: key "a" already set in map\n  line 4: key "c" already set in map',
    )


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("a: [", "line 1: did not find expected node content", id="open-list"),
        pytest.param("a: b: c", "mapping values are not allowed in this context", id="first-line"),
        pytest.param("a: b\nc: d: e", "line 2: mapping values are not allowed in this context", id="second-line"),
    ],
)
def test_syntax_errors(text: str, want: str) -> None:
    with pytest.raises(errors.DecodeError) as caught:
        yamlsyntax.read(text.encode())
    assert str(caught.value) == want
