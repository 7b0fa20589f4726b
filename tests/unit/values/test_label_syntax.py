"""The text form of label selectors."""

import pytest

from drachma import errors
from drachma.values import label_syntax

OPERATORS = "in, notin, =, ==, !=, gt, lt"


@pytest.mark.parametrize(
    ("text", "want_canonical"),
    [
        pytest.param("", "", id="empty"),
        pytest.param("  \t\n", "", id="white-space"),
        pytest.param("a", "a", id="exists"),
        pytest.param("! a", "!a", id="does-not-exist"),
        pytest.param("a=b", "a=b", id="equals"),
        pytest.param("a == b", "a==b", id="double-equals"),
        pytest.param("a!=b", "a!=b", id="not-equals"),
        pytest.param("a=", "a=", id="equals-nothing"),
        pytest.param("a=,b", "a=,b", id="equals-nothing-then-more"),
        pytest.param("a in (y,x)", "a in (x,y)", id="in-sorts-values"),
        pytest.param("a in (x,x)", "a in (x)", id="in-drops-repeats"),
        pytest.param("a in ()", "a in ()", id="in-nothing"),
        pytest.param("a in (,)", "a in ()", id="in-lone-comma"),
        pytest.param("a in (,x,,y,)", "a in (,x,y)", id="in-empty-values"),
        pytest.param("a notin(x)", "a notin (x)", id="not-in-without-space"),
        pytest.param("a>1", "a>1", id="greater"),
        pytest.param("a<1", "a<1", id="less"),
        pytest.param("in in (in,notin)", "in in (in,notin)", id="keywords-as-key-and-values"),
        pytest.param("notin", "notin", id="keyword-as-key"),
        pytest.param("a=in", "a=in", id="keyword-as-value"),
        pytest.param("b=1,a=2", "a=2,b=1", id="sorted-by-key"),
        pytest.param("a=b,c!=d,e in (x,y),!f,g>1", "a=b,c!=d,e in (x,y),!f,g>1", id="all-together"),
        pytest.param("example.com/a=b", "example.com/a=b", id="prefixed-key"),
        pytest.param("a \0 this is not looked at", "a", id="zero-byte-ends"),
    ],
)
def test_canonical_form(text: str, want_canonical: str) -> None:
    selector = label_syntax.parse(text)
    assert str(selector) == want_canonical
    assert label_syntax.parse(want_canonical) == selector


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("", True, id="everything"),
        pytest.param("app=web,tier!=back", True, id="equality"),
        pytest.param("app=web,tier=back", False, id="one-fails"),
        pytest.param("app in (web,db),!gpu", True, id="set-and-absence"),
        pytest.param("cores>7,cores<9", True, id="between"),
        pytest.param("app notin (web)", False, id="not-in"),
        pytest.param("gpu", False, id="absent"),
    ],
)
def test_matches(text: str, want: bool) -> None:
    assert label_syntax.parse(text).matches({"app": "web", "tier": "front", "cores": "8"}) is want


@pytest.mark.parametrize(
    ("text", "want_message"),
    [
        pytest.param(",a", "found ',', expected: !, identifier, or 'end of string'", id="leading-comma"),
        pytest.param("a,", "found '', expected: identifier after ','", id="trailing-comma"),
        pytest.param("a,,b", "found ',', expected: identifier after ','", id="two-commas"),
        pytest.param("a=b c", "found 'c', expected: ',' or 'end of string'", id="word-too-many"),
        pytest.param("!a=b", "found '=', expected: ',' or 'end of string'", id="negated-with-value"),
        pytest.param("a b", f"unable to parse requirement: found 'b', expected: {OPERATORS}", id="no-operator"),
        pytest.param("a!", f"unable to parse requirement: found '!', expected: {OPERATORS}", id="lone-bang"),
        pytest.param("!", "unable to parse requirement: found '', expected: identifier", id="only-bang"),
        pytest.param("!!a", "unable to parse requirement: found '!', expected: identifier", id="two-bangs"),
        pytest.param("a===b", "unable to parse requirement: found '=', expected: identifier", id="three-equals"),
        pytest.param("a in b", "unable to parse requirement: found 'b' expected: '('", id="in-without-parens"),
        pytest.param("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier", id="in-open"),
        pytest.param(
            "a in (x", "unable to parse requirement: found '', expected: ',' or ')'", id="in-open-after-value"
        ),
        pytest.param(
            "a in (x,", "unable to parse requirement: found '', expected: ',', or identifier", id="in-open-comma"
        ),
        pytest.param(
            "a in (x y)", "unable to parse requirement: found 'y', expected: ',' or ')'", id="in-without-comma"
        ),
        pytest.param(
            "a in (=)", "unable to parse requirement: found '=', expected: ',', ')' or identifier", id="in-operator"
        ),
        pytest.param(
            "a>x",
            'unable to parse requirement: values[0]: Invalid value: "x": '
            "for 'Gt', 'Lt' operators, the value must be an integer",
            id="greater-than-word",
        ),
        pytest.param(
            "a/b/c=d",
            'unable to parse requirement: <nil>: Invalid value: "a/b/c": a valid label key must consist of '
            "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
            "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
            "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')",
            id="impossible-key",
        ),
    ],
)
def test_refused(text: str, want_message: str) -> None:
    with pytest.raises(errors.InvalidValueError) as caught:
        label_syntax.parse(text)
    assert str(caught.value) == want_message
