"""Boards and alerts: their expressions are well formed, every metric in them exists, and every alert has a runbook."""

import asyncio
import datetime as dt
import json
import pathlib
import re
from collections.abc import Iterator

import prometheus_client
import pytest
import yaml

from drachma.exporter import Census, Exporter, Objects
from drachma.runtime import Surroundings, clientmetrics
from drachma.scheduler.scheduler import Scheduler
from tests.scenarios import schedulers

PROJECT = pathlib.Path(__file__).parents[3]
MONITORING = PROJECT / "deploy" / "monitoring"
ALERTS = [
    rule for group in yaml.safe_load((MONITORING / "alerts.yaml").read_text())["groups"] for rule in group["rules"]
]
BOARDS = sorted(MONITORING.glob("*.json"))
FUNCTIONS = {"sum", "rate", "increase", "topk", "absent", "histogram_quantile"}
WORDS = {"by", "le", "without", "and", "or", "unless", "on"}
TOKEN = re.compile(
    r"""\s*(?:(?P<string>"[^"]*")|(?P<duration>\d+[smhd])|(?P<number>\d+(?:\.\d+)?)|(?P<name>[a-zA-Z_][a-zA-Z0-9_]*)
    |(?P<sign>==|!=|=~|!~|>=|<=|[-+*/<>=(){}\[\],]))""",
    re.VERBOSE,
)


def _expressions() -> Iterator[tuple[str, str]]:
    for rule in ALERTS:
        yield rule["alert"], rule["expr"]
    for file in BOARDS:
        for panel in json.loads(file.read_text())["panels"]:
            for query in panel["targets"]:
                yield f"{file.stem}: {panel['title']}", query["expr"]


def tokens(expression: str) -> list[tuple[str, str]]:
    """Return the tokens of an expression with their kinds. Raises ValueError for a character that is none."""
    position, result = 0, []
    while position < len(expression):
        match = TOKEN.match(expression, position)
        if match is None:
            raise ValueError(f"{expression}: unexpected {expression[position:]!r}")
        result.append((str(match.lastgroup), match[str(match.lastgroup)]))
        position = match.end()
    return result


def metric_names(expression: str) -> set[str]:
    """Return the metrics of an expression: names outside of label lists that are no functions and no words."""
    names, closers = set(), []
    items = tokens(expression)
    for number, (kind, text) in enumerate(items):
        if text in "({[" and kind == "sign":
            is_labels = text == "{" or (number and items[number - 1][1] in ("by", "without", "on"))
            closers.append(({"(": ")", "{": "}", "[": "]"}[text], is_labels))
        elif text in ")}]" and kind == "sign":
            if not closers or closers.pop()[0] != text:
                raise ValueError(f"{expression}: unexpected {text}")
        elif kind == "name" and not any(is_labels for _, is_labels in closers) and text not in WORDS:
            is_function = number + 1 < len(items) and items[number + 1][1] == "("
            is_aggregation = number + 1 < len(items) and items[number + 1][1] in ("by", "without")
            if is_function or is_aggregation:
                assert text in FUNCTIONS, f"{expression}: function {text} is not known"
            else:
                names.add(text)
    if closers:
        raise ValueError(f"{expression}: {closers[-1][0]} is missing")
    return names


@pytest.fixture(scope="module")
def known() -> set[str]:
    """Return the names of all series that the exporter and the scheduler have."""
    return asyncio.run(_existing_names())


async def _existing_names() -> set[str]:
    registry = prometheus_client.CollectorRegistry()
    clientmetrics.ClientMetrics("https://server", registry=registry).observe("GET", "200", 0.1)
    async with schedulers.cluster(scheduler=False) as world:
        shared = world.world.surroundings.informers
        surroundings = Surroundings(world.client, shared_informers=shared, clock=world.clock, registry=registry)
        Scheduler(surroundings)
        await Exporter(surroundings, Census(), seconds=15).count()
        families = list(registry.collect())
    names = {each.name for each in families}
    for each in families:
        suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}.get(each.type, ())
        names |= {f"{each.name}{suffix}" for suffix in suffixes}
    return names


@pytest.mark.parametrize(("title", "expression"), [pytest.param(*each, id=each[0]) for each in _expressions()])
def test_every_metric_of_an_expression_exists(title: str, expression: str, known: set[str]) -> None:
    names = metric_names(expression)
    assert names, title
    assert names <= known


def test_all_metrics_of_the_census_are_shown_or_alerted_on() -> None:
    shown = {name for _, expression in _expressions() for name in metric_names(expression)}
    counted = {each.name for each in Census().metrics(Objects(), now=dt.datetime(2026, 1, 1, tzinfo=dt.UTC))}
    assert counted <= shown


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_every_alert_has_a_runbook(rule: dict[str, object]) -> None:
    annotations = rule["annotations"]
    assert isinstance(annotations, dict)
    page, _, anchor = str(annotations["runbook_url"]).partition("#")
    headings = re.findall(r"^## (\w+)$", (PROJECT / page).read_text(), re.MULTILINE)
    assert anchor == str(rule["alert"]).lower()
    assert str(rule["alert"]) in headings


@pytest.mark.parametrize("expression", ["sum(a", "sum(a))", "a{b='c'}", "rate(a[5m)"])
def test_malformed_expressions_are_found(expression: str) -> None:
    with pytest.raises(ValueError, match=r"unexpected|missing"):
        metric_names(expression)
