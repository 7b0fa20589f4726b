"""Tokens of CEL: one pass over the text, called by the parser only.

The result is three parallel lists (kinds, texts, offsets), which is several times faster to read than a list of
token objects. Kinds are the operator's own text, or one of the names below; the last token is always ``END``.
Text that is no token is refused with a syntax error at its first character. Literals are only cut out here;
``literals.py`` gives them their values.
"""

from __future__ import annotations

import re

from drachma.cel import source

END = "<EOF>"
BYTES = "BYTES"
ESCAPED_IDENT = "ESC_IDENTIFIER"
FLOAT = "NUM_FLOAT"
IDENT = "IDENTIFIER"
INT = "NUM_INT"
STRING = "STRING"
UINT = "NUM_UINT"

# Words that the grammar reserves; they are never identifiers nor field names.
KEYWORDS = frozenset({"in", "true", "false", "null"})

# Words that the language keeps for itself: no variables or functions, but field names if they are no keywords.
# fmt: off
RESERVED = frozenset({
    "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop",
    "namespace", "null", "package", "return", "true", "var", "void", "while",
})
# fmt: on

_ESCAPE = r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_QUOTED = "|".join(
    (
        rf'"""(?:[^\\"]++|{_ESCAPE}|"(?!""))*+"""',
        rf"'''(?:[^\\']++|{_ESCAPE}|'(?!''))*+'''",
        rf'"(?:[^\\"\n\r]++|{_ESCAPE})*+"',
        rf"'(?:[^\\'\n\r]++|{_ESCAPE})*+'",
        r'[rR]"""(?:[^"]++|"(?!""))*+"""',
        r"[rR]'''(?:[^']++|'(?!''))*+'''",
        r'[rR]"[^"\n\r]*+"',
        r"[rR]'[^'\n\r]*+'",
    )
)
_EXPONENT = r"[eE][+-]?[0-9]+"

# The order gives the longest match: a string before the identifier its prefix could be, a float before an int.
# Possessive repetition keeps the scan linear in the text, whatever it holds.
_TOKEN = re.compile(
    rf"""(?:[\t \r\n\f]++|//[^\n]*+)*+(?:
    (?P<OPERATOR>(?!\.[0-9])(?:[-+*/%?:.,\[\](){{}}]|==|&&|\|\||[!<>]=?))
    |(?P<{IDENT}>(?![rRbB]{{1,2}}["'])[A-Za-z_][A-Za-z0-9_]*+)
    |(?P<{STRING}>{_QUOTED})
    |(?P<{FLOAT}>[0-9]+\.[0-9]+(?:{_EXPONENT})?|[0-9]+{_EXPONENT}|\.[0-9]+(?:{_EXPONENT})?)
    |(?P<{UINT}>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
    |(?P<{INT}>0x[0-9a-fA-F]+|[0-9]+)
    |(?P<{BYTES}>[bB](?:{_QUOTED}))
    |(?P<PREFIX>[A-Za-z]++)
    |(?P<{ESCAPED_IDENT}>`[A-Za-z0-9_.\-/\ ]+`)
    |(?P<END>\Z)
    |(?P<OTHER>[\s\S])
    )""",
    re.VERBOSE,
)


def tokenize(text: str) -> tuple[list[str], list[str], list[int], source.Issue | None]:
    """Kinds, texts and offsets of the tokens before the first text that is no token, and the issue with that text."""
    kinds: list[str] = []
    texts: list[str] = []
    offsets: list[int] = []
    for match in _TOKEN.finditer(text):
        group = match.lastgroup
        assert group is not None
        word = match[group]
        kind = _KINDS.get(group)
        if kind is None:
            break
        kinds.append(kind if kind and word not in KEYWORDS else word)
        texts.append(word)
        offsets.append(match.end() - len(word))
    start = match.end() - len(word)
    kinds.append(END)
    texts.append(END)
    offsets.append(start)
    if start == len(text):
        return kinds, texts, offsets, None
    message = f"Syntax error: token recognition error at: '{_unrecognized(text, start)}'"
    return kinds, texts, offsets, source.Issue(start, message)


# By group of the pattern: the kind, or "" for a token that is its own kind; other groups end the tokens.
_KINDS = {
    "OPERATOR": "",
    # Letters before a quote that are no prefix of a complete string, such as the r of an unclosed r"...
    "PREFIX": IDENT,
    **{kind: kind for kind in (BYTES, ESCAPED_IDENT, FLOAT, IDENT, INT, STRING, UINT)},
}


def _unrecognized(text: str, start: int) -> str:
    """Return the text to show for an invalid token: a broken string to the end of its line, else one character."""
    if text[start] in "\"'`":
        return text[start:].split("\n", 1)[0]
    return text[start]
