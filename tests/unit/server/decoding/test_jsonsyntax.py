import json

import pytest

from drachma.server.decoding import jsonsyntax


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(b"{not json", "invalid character 'n' looking for beginning of object key string", id="bare-key"),
        pytest.param(b"", "unexpected end of JSON input", id="empty"),
        pytest.param(b"[1,2", "unexpected end of JSON input", id="unclosed"),
        pytest.param(b'{"a":}', "invalid character '}' looking for beginning of value", id="no-value"),
        pytest.param(b'{"a" 1}', "invalid character '1' after object key", id="no-colon"),
        pytest.param(b'{"a":1 "b"}', "invalid character '\"' after object key:value pair", id="no-comma"),
        pytest.param(b"[1 2]", "invalid character '2' after array element", id="no-comma-in-array"),
        pytest.param(b"{} x", "invalid character 'x' after top-level value", id="something-after"),
        pytest.param(b'"\x01"', "invalid character '\\x01' in string literal", id="control-character"),
        pytest.param(b'"\\q"', "invalid character 'q' in string escape code", id="unknown-escape"),
        pytest.param(b'"\\u12g4"', "invalid character 'g' in \\u hexadecimal character escape", id="not-hexadecimal"),
        pytest.param(b"-x", "invalid character 'x' in numeric literal", id="lone-minus"),
        pytest.param(b"1.x", "invalid character 'x' after decimal point in numeric literal", id="no-decimals"),
        pytest.param(b"1ex", "invalid character 'x' in exponent of numeric literal", id="no-exponent"),
        pytest.param(b"trae", "invalid character 'a' in literal true (expecting 'u')", id="misspelt-true"),
        pytest.param(b"[" * 10_001, "invalid character '[' exceeded max depth", id="too-deep"),
    ],
)
def test_explain(text: bytes, want: str) -> None:
    assert jsonsyntax.explain(text) == want


@pytest.mark.parametrize(
    "text", [b"{}", b"[]", b' {"a": [1, -2.5e3, "x\\u00e4", null, true, false, {}]} ', b"0", b"[[],[[]]]"]
)
def test_good_texts_have_no_problem(text: bytes) -> None:
    json.loads(text)
    assert jsonsyntax.explain(text) == ""


def test_repeated_keys() -> None:
    text = b'{"a":1,"b":[{"c":2,"c":3}],"a":{"x":1,"x":2,"x":3}}'
    assert jsonsyntax.may_repeat_keys(text, json.loads(text))
    assert jsonsyntax.repeated_keys(text) == ("b[0].c", "a", "a.x")


def test_what_looks_like_a_key_inside_a_string_is_none() -> None:
    text = json.dumps({"a": 'say "b": c'}).encode()
    assert jsonsyntax.may_repeat_keys(text, json.loads(text))
    assert jsonsyntax.repeated_keys(text) == ()
    assert not jsonsyntax.may_repeat_keys(b'{"a" : {"a":1}}', {"a": {"a": 1}})


@pytest.mark.parametrize(
    ("text", "repeats"),
    [
        pytest.param(b'{"a":1,"b":{"a":2}}', False, id="compact"),
        pytest.param(b'{"a": 1, "b": [{"a": 2}]}', False, id="with-blanks"),
        pytest.param(b'{"a":1,"a":2}', True, id="repeated"),
        pytest.param(b'{"a":{"b":1,"b":1}}', True, id="repeated-below"),
        pytest.param(b'{"a":"\\ud800","b":1}', False, id="half-a-surrogate-pair"),
        pytest.param(b'{"a":99999999999999999999999999,"b":1}', False, id="large-number"),
        pytest.param(b'{"a":99999999999999999999999999,"a":1}', True, id="large-number-repeated"),
    ],
)
def test_texts_that_may_repeat_keys(text: bytes, repeats: bool) -> None:
    assert jsonsyntax.may_repeat_keys(text, json.loads(text)) is repeats


def test_a_deep_text_repeats_no_keys() -> None:
    depth = 5000
    document: dict[str, object] = {"a": 1}
    for _ in range(depth - 1):
        document = {"a": document}
    assert not jsonsyntax.may_repeat_keys(b'{"a":' * depth + b"1" + b"}" * depth, document)
