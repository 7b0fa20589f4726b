"""Rules of roles against the plain reading of each rule, one after the other."""

from hypothesis import given
from hypothesis import strategies as st

from drachma.server.access import policyrules
from drachma.server.access.policyrules import Permissions, Rule

VERBS, GROUPS, NAMES = ("get", "list", "*"), ("", "apps", "*"), ("a", "b")
RESOURCES = ("pods", "pods/log", "*", "*/log", "*/scale", "jobs/scale")


def _some(values: tuple[str, ...], *, least: int = 1) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(values), min_size=least, max_size=3).map(tuple)


rules = st.builds(
    Rule, verbs=_some(VERBS), groups=_some(GROUPS), resources=_some(RESOURCES), names=_some(NAMES, least=0)
)
questions = st.tuples(
    st.sampled_from(VERBS[:2]),
    st.sampled_from(GROUPS[:2]),
    st.sampled_from(("pods", "jobs")),
    st.sampled_from(("", "log", "scale")),
    st.sampled_from(("", *NAMES)),
)


def _allows(rule: Rule, question: tuple[str, str, str, str, str]) -> bool:
    verb, group, resource, subresource, name = question
    full = f"{resource}/{subresource}" if subresource else resource
    below = (f"*/{subresource}",) if subresource else ()
    return (
        any(each in ("*", verb) for each in rule.verbs)
        and any(each in ("*", group) for each in rule.groups)
        and any(each in ("*", full, *below) for each in rule.resources)
        and (not rule.names or name in rule.names)
    )


@given(st.lists(rules, max_size=4), questions)
def test_several_rules_allow_what_one_of_them_does(given_rules: list[Rule], question: tuple[str, ...]) -> None:
    verb, group, resource, subresource, name = question
    permissions = Permissions([("all", given_rules)])
    source = permissions.find_resource_source(verb, group, resource=resource, subresource=subresource, name=name)
    assert (source == "all") is any(_allows(rule, (verb, group, resource, subresource, name)) for rule in given_rules)


@given(st.lists(rules, max_size=4), st.lists(rules, max_size=2), questions)
def test_what_is_not_missing_is_allowed(
    owned: list[Rule], granted: list[Rule], question: tuple[str, str, str, str, str]
) -> None:
    if not policyrules.find_missing(owned, granted) and any(_allows(rule, question) for rule in granted):
        assert any(_allows(rule, question) for rule in owned)
