"""Tokens: the longest text that is one, and where text is none."""

import pytest

from drachma.cel import lexer


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("a.b_1", "IDENTIFIER:a .:. IDENTIFIER:b_1", id="names"),
        pytest.param(
            "in inn true trueish null", "in:in IDENTIFIER:inn true:true IDENTIFIER:trueish null:null", id="keywords"
        ),
        pytest.param("1 0x1F 1u 0xAu", "NUM_INT:1 NUM_INT:0x1F NUM_UINT:1u NUM_UINT:0xAu", id="integers"),
        pytest.param("1.5 .5 1e3 1.5e-3", "NUM_FLOAT:1.5 NUM_FLOAT:.5 NUM_FLOAT:1e3 NUM_FLOAT:1.5e-3", id="floats"),
        pytest.param("1..2", "NUM_INT:1 .:. NUM_FLOAT:.2", id="int-dot-float"),
        pytest.param("1.5u", "NUM_FLOAT:1.5 IDENTIFIER:u", id="float-has-no-suffix"),
        pytest.param("0x", "NUM_INT:0 IDENTIFIER:x", id="hex-without-digits"),
        pytest.param("a<=b!=!c", "IDENTIFIER:a <=:<= IDENTIFIER:b !=:!= !:! IDENTIFIER:c", id="longest-operator"),
        pytest.param("'a' \"b\"", "STRING:'a' STRING:\"b\"", id="both-quotes"),
        pytest.param("r'\\' R\"\\d\"", "STRING:r'\\' STRING:R\"\\d\"", id="raw-strings-keep-backslashes"),
        pytest.param('"""a"b""c"""', 'STRING:"""a"b""c"""', id="triple-quotes-hold-quotes"),
        pytest.param("'''a\nb'''", "STRING:'''a\nb'''", id="triple-quotes-hold-lines"),
        pytest.param("b'x' bR'y'", "BYTES:b'x' BYTES:bR'y'", id="bytes"),
        pytest.param("rb'x'", "IDENTIFIER:rb STRING:'x'", id="raw-before-bytes-is-no-prefix"),
        pytest.param("a // b\n c", "IDENTIFIER:a IDENTIFIER:c", id="comment"),
        pytest.param("`a b-/.c`", "ESC_IDENTIFIER:`a b-/.c`", id="quoted-field"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_tokens(text: str, want: str) -> None:
    kinds, texts, offsets, issue = lexer.tokenize(text)
    assert " ".join(f"{kind}:{word}" for kind, word in zip(kinds[:-1], texts[:-1], strict=True)) == want
    assert kinds[-1] == lexer.END
    assert offsets[-1] == len(text)
    assert issue is None
    assert all(text.startswith(word, at) for word, at in zip(texts[:-1], offsets[:-1], strict=True))


@pytest.mark.parametrize(
    ("text", "offset", "shown"),
    [
        pytest.param("a $ b", 2, "$", id="stray-character"),
        pytest.param("a = b", 2, "=", id="single-equals"),
        pytest.param("1 + 'abc", 4, "'abc", id="unclosed-string"),
        pytest.param('"a\\q"', 0, '"a\\q"', id="unknown-escape"),
        pytest.param('"\\x4g"', 0, '"\\x4g"', id="short-hex-escape"),
        pytest.param('"\\400"', 0, '"\\400"', id="octal-escape-past-a-byte"),
        pytest.param('"""a\\q"""', 2, '"a\\q"""', id="bad-triple-string-is-an-empty-string-first"),
        pytest.param("r'abc", 1, "'abc", id="unclosed-raw-string-is-a-name-first"),
        pytest.param("'a\nb'", 0, "'a", id="line-break-in-a-string"),
        pytest.param("a.``", 2, "``", id="empty-quoted-field"),
    ],
)
def test_text_that_is_no_token(text: str, offset: int, shown: str) -> None:
    issue = lexer.tokenize(text)[3]
    assert issue is not None
    assert issue.offset == offset
    assert issue.message == f"Syntax error: token recognition error at: '{shown}'"
