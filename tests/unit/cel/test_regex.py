"""Regular expressions are compiled within bounds."""

import pytest

from drachma.bounds import effort, memory
from drachma.cel.runtime import patternsize, regex


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param(r"\PL{400}", id="repeated-unicode-class"),
        pytest.param(r"(\PL{30}){30}", id="nested-repetition"),
        pytest.param(r"\PL" * 1000, id="many-unicode-classes"),
        pytest.param("|".join([r"\PL"] * 1000), id="alternatives-that-re2-would-merge"),
        pytest.param(r"(?i)[^\p{Greek}\p{L}]{200}", id="class-in-brackets"),
        pytest.param(r"(?P<x>\pL{30}){30}", id="named-group"),
        pytest.param("(?:a{500}b{500}){1000}", id="repeated-text"),
        pytest.param("a" * 200_000, id="long-text"),
        pytest.param(r"\Q" + "a" * 110_000, id="long-quotation"),
        pytest.param(r"\pL{300}", id="letters"),
    ],
)
def test_large_programs_are_refused_before_they_are_built(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex, "_build", lambda *_: pytest.fail("built"))
    with pytest.raises(regex.PatternError, match=r"error parsing regexp: (expression too large|invalid repeat count)"):
        regex.compile_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        pytest.param("(" * 1000 + "a" + ")" * 1000, "expression nests too deeply", id="depth"),
        pytest.param("a{1001}", "invalid repeat count", id="count"),
        pytest.param("((a{1,30}){1,30}){1,20}", "invalid repeat count", id="product-of-counts"),
        pytest.param("a**", "invalid nested repetition operator", id="nested-operator"),
        pytest.param("(a", r"missing closing \)", id="parenthesis"),
        pytest.param("[a", "missing closing ]", id="bracket"),
    ],
)
def test_what_go_refuses_is_refused(pattern: str, message: str) -> None:
    with pytest.raises(regex.PatternError, match=message):
        regex.compile_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        pytest.param(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", "a.b-c", id="dns-name"),
        pytest.param(r"^[\p{L}\p{N}_-]{1,63}$", "né-7", id="letters-of-all-scripts"),
        pytest.param(r"^.{0,1000}$", "abc", id="length"),
        pytest.param("(" * 998 + "a" + ")" * 998, "a", id="deep"),
        pytest.param("(x?){1000}y", "xxy", id="largest-count"),
        pytest.param("(a{2}){3}", "aaaaaa", id="product"),
        pytest.param("|".join(str(number) for number in range(3000)), "2999", id="many-alternatives"),
        pytest.param(r"[[:alpha:]][^[:alpha:]][]a][^]]", "a1]b", id="brackets"),
        pytest.param(r"\Qa{1000}{1000}\E", "a{1000}{1000}", id="quotation"),
        pytest.param("a{,5}", "a{,5}", id="braces-that-are-text"),
        pytest.param(r"\p{greek}+", "αβγ", id="class-that-go-spells-so"),
    ],
)
def test_sane_patterns_are_taken(pattern: str, text: str) -> None:
    assert regex.matcher(pattern)(text)
    assert regex.matches(text, pattern)


def test_an_outcome_is_remembered_also_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = "remembered-a+", "remembered-(a"
    compiled = regex.compile_pattern(good)
    with pytest.raises(regex.PatternError) as first:
        regex.compile_pattern(bad)
    monkeypatch.setattr(regex, "_build", lambda *_: pytest.fail("built"))
    assert regex.compile_pattern(good) is compiled
    with pytest.raises(regex.PatternError) as second:
        regex.compile_pattern(bad)
    assert str(first.value) == str(second.value)
    assert first.value is not second.value


def test_what_is_remembered_counts_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = memory.Cache[str, object]("patterns", memory.Memory())
    monkeypatch.setattr(regex, "_outcomes", outcomes)
    regex.compile_pattern("[a-z]{100}")
    assert outcomes.size > 500_000


def test_building_and_searching_spend_effort() -> None:
    with effort.limit(effort.Allowance(1000)), pytest.raises(effort.OverrunError):
        regex.compile_pattern("spent-[a-z]{900}")
    search = regex.matcher("spent-(x?){1000}y")
    with effort.limit(effort.Allowance(1000)), pytest.raises(effort.OverrunError):
        search("x" * 20_000)
    with effort.limit(effort.Allowance(1000)), pytest.raises(effort.OverrunError):
        regex.find_all("x" * 20_000, "x")


def test_an_estimate_of_any_text() -> None:
    for text in ("", ")", "(", "[", "[^]", "\\", "\\p", "\\p{", "{1,2}", "*", "a{9999999999999999999}", "(?", "[[:"):
        assert patternsize.estimate(text, most=regex.MOST_INSTRUCTIONS).instructions >= 0
