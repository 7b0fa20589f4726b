"""Node selectors: terms, operators, fields, and when bad terms are reported."""

import pytest

from drachma import errors
from drachma.values import nodes

LABELS = {"zone": "a", "cores": "16", "gpu": ""}
NAME = "n1"


def expression(key: str, operator: str, *values: str) -> nodes.Expression:
    return nodes.Expression(key, operator, values)


def by_label(*expressions: nodes.Expression) -> nodes.Term:
    return nodes.Term(match_expressions=expressions)


def by_field(*expressions: nodes.Expression) -> nodes.Term:
    return nodes.Term(match_fields=expressions)


@pytest.mark.parametrize(
    ("terms", "want"),
    [
        pytest.param([], False, id="no-terms"),
        pytest.param([nodes.Term()], False, id="empty-term"),
        pytest.param([nodes.Term(), by_label(expression("gpu", "Exists"))], True, id="empty-term-and-other"),
        pytest.param([by_label(expression("zone", "In", "a", "b"))], True, id="in"),
        pytest.param([by_label(expression("zone", "In", "b"))], False, id="in-other"),
        pytest.param([by_label(expression("none", "In", "b"))], False, id="in-absent"),
        pytest.param([by_label(expression("zone", "NotIn", "b"))], True, id="not-in"),
        pytest.param([by_label(expression("none", "NotIn", "b"))], True, id="not-in-absent"),
        pytest.param([by_label(expression("gpu", "Exists"))], True, id="exists"),
        pytest.param([by_label(expression("none", "DoesNotExist"))], True, id="does-not-exist"),
        pytest.param([by_label(expression("gpu", "DoesNotExist"))], False, id="does-not-exist-but-does"),
        pytest.param([by_label(expression("cores", "Gt", "8"))], True, id="greater"),
        pytest.param([by_label(expression("cores", "Gt", "16"))], False, id="not-greater"),
        pytest.param([by_label(expression("cores", "Lt", "100"))], True, id="less"),
        pytest.param([by_label(expression("zone", "Lt", "100"))], False, id="less-but-no-number"),
        pytest.param([by_field(expression("metadata.name", "In", "n1"))], True, id="name"),
        pytest.param([by_field(expression("metadata.name", "In", "n2"))], False, id="other-name"),
        pytest.param([by_field(expression("metadata.name", "NotIn", "n2"))], True, id="not-other-name"),
        pytest.param([by_field(expression("spec.x", "In", "n1"))], False, id="unknown-field"),
        pytest.param([by_field(expression("spec.x", "NotIn", "n1"))], True, id="not-unknown-field"),
        pytest.param(
            [nodes.Term([expression("zone", "In", "a")], [expression("metadata.name", "In", "n2")])],
            False,
            id="labels-and-fields-must-both-match",
        ),
        pytest.param(
            [by_label(expression("zone", "In", "a"), expression("gpu", "DoesNotExist"))],
            False,
            id="expressions-must-all-match",
        ),
        pytest.param(
            [by_label(expression("zone", "In", "b")), by_field(expression("metadata.name", "In", "n1"))],
            True,
            id="one-term-is-enough",
        ),
    ],
)
def test_matches(terms: list[nodes.Term], want: bool) -> None:
    assert nodes.NodeSelectorMatcher.compile(terms).matches(LABELS, NAME) is want
    assert nodes.NodeSelectorMatcher.compile_lazily(terms).matches(LABELS, NAME) is want


def test_fields_of_a_node_without_a_name_are_not_looked_at() -> None:
    matcher = nodes.NodeSelectorMatcher.compile([by_field(expression("metadata.name", "In", "n1"))])
    assert matcher.matches({}, "")


GOOD = by_label(expression("zone", "In", "a"))
BAD_OPERATOR = (
    'nodeSelectorTerms[{}].matchExpressions[0].operator: Unsupported value: "Near": '
    'supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
)


@pytest.mark.parametrize(
    ("terms", "want_message"),
    [
        pytest.param([by_label(expression("zone", "Near", "a"))], BAD_OPERATOR.format(0), id="operator"),
        pytest.param(
            [nodes.Term(), by_label(expression("zone", "Near", "a"))],
            BAD_OPERATOR.format(1),
            id="empty-terms-count-in-the-path",
        ),
        pytest.param(
            [by_field(expression("metadata.name", "Exists"))],
            'nodeSelectorTerms[0].matchFields[0].operator: Unsupported value: "Exists": '
            'supported values: "In", "NotIn"',
            id="operator-of-field",
        ),
        pytest.param(
            [by_field(expression("metadata.name", "In", "n1", "n2"))],
            'nodeSelectorTerms[0].matchFields[0].values: Invalid value: ["n1","n2"]: must have one element',
            id="two-names",
        ),
        pytest.param(
            [by_field(nodes.Expression("metadata.name", "In"))],
            "nodeSelectorTerms[0].matchFields[0].values: Invalid value: null: must have one element",
            id="absent-values",
        ),
        pytest.param(
            [by_label(expression("zone", "In"))],
            "nodeSelectorTerms[0].matchExpressions[0].values: Invalid value: []: "
            "for 'in', 'notin' operators, values set can't be empty",
            id="no-values",
        ),
        pytest.param(
            [by_label(expression("cores", "Gt", "1", "2"))],
            'nodeSelectorTerms[0].matchExpressions[0].values: Invalid value: ["1","2"]: '
            "for 'Gt', 'Lt' operators, exactly one value is required",
            id="two-bounds",
        ),
        pytest.param(
            [by_label(expression("cores", "Gt", "x"), expression("zone", "Near"))],
            '[nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value: "x": '
            "for 'Gt', 'Lt' operators, the value must be an integer, "
            + BAD_OPERATOR.format(0).replace("matchExpressions[0]", "matchExpressions[1]")
            + "]",
            id="two-problems",
        ),
    ],
)
def test_refused(terms: list[nodes.Term], want_message: str) -> None:
    with pytest.raises(errors.InvalidValueError) as caught:
        nodes.NodeSelectorMatcher.compile(terms)
    assert str(caught.value) == want_message
    lazy = nodes.NodeSelectorMatcher.compile_lazily(terms)
    with pytest.raises(errors.InvalidValueError) as caught:
        lazy.matches(LABELS, NAME)
    assert str(caught.value) == want_message


def test_lazy_matcher_reports_bad_terms_only_if_no_term_matches() -> None:
    lazy = nodes.NodeSelectorMatcher.compile_lazily([by_label(expression("zone", "Near")), GOOD])
    assert lazy.matches({"zone": "a"}, NAME)
    with pytest.raises(errors.InvalidValueError, match="Unsupported value"):
        lazy.matches({"zone": "b"}, NAME)


def test_path_prefixes_the_messages() -> None:
    with pytest.raises(errors.InvalidValueError, match=r"^spec\.nodeSelector\.nodeSelectorTerms\[0\]\."):
        nodes.NodeSelectorMatcher.compile([by_label(expression("zone", "Near"))], path="spec.nodeSelector")


@pytest.mark.parametrize(
    ("node_selector", "terms", "want"),
    [
        pytest.param({}, None, True, id="nothing-required"),
        pytest.param({"zone": "a"}, None, True, id="node-selector"),
        pytest.param({"zone": "b"}, None, False, id="node-selector-fails"),
        pytest.param({}, [], False, id="affinity-without-terms"),
        pytest.param({}, [GOOD], True, id="affinity"),
        pytest.param({"cores": "16"}, [GOOD], True, id="both"),
        pytest.param({"cores": "8"}, [by_label(expression("zone", "Near"))], False, id="selector-fails-first"),
    ],
)
def test_required_affinity(node_selector: dict[str, str], terms: list[nodes.Term] | None, want: bool) -> None:
    assert nodes.RequiredAffinity(node_selector, terms).matches(LABELS, NAME) is want
