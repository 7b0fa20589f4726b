"""What-if: the effect of a change of a claim or of the cluster, simulated before it is made."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from drachma import errors
from drachma.runtime.cache import Key
from drachma.web import experiment
from drachma.web.page import Page

_MOST_NODES: Final = 100
_MOST_SHOWN: Final = 500


async def show(page: Page) -> Response:
    """Return the form, and the answer if the address has a question."""
    query = page.query("pod", "request", "count", "class", "selector", "remove_selectors", "like", "nodes")
    texts = {
        name: query.text(name, most=10_240)
        for name in ("pod", "request", "count", "class", "selector", "like", "nodes")
    }
    removes = query.choice("remove_selectors", ("yes",))
    change = experiment.Change(
        request=texts["request"],
        count=query.number("count", default=0, least=1, most=1000),
        device_class=texts["class"],
        selector="" if removes else texts["selector"] or None,
        like=texts["like"],
        new_nodes=query.number("nodes", default=0, least=1, most=_MOST_NODES),
    )
    context: dict[str, Any] = {"answer": None, "refusal": "", "problem": ""}
    if texts["pod"] or change.new_nodes:
        await _answer(page, texts["pod"], change, context)
    model = page.view.model
    waiting = sorted(model.waiting)
    return page.render(
        "whatif.html",
        chosen=texts,
        removes=removes,
        pods=waiting[:_MOST_SHOWN],
        classes=sorted(model.classes),
        nodes=sorted(model.nodes)[:_MOST_SHOWN],
        **context,
    )


async def _answer(page: Page, pod: str, change: experiment.Change, context: dict[str, Any]) -> None:
    namespace, slash, name = pod.partition("/")
    if pod and not (namespace and slash and name):
        raise errors.InvalidValueError(f"parameter 'pod': {pod[:300]!r} is not NAMESPACE/NAME")
    if change.new_nodes and not change.like:
        raise errors.InvalidValueError("parameter 'like': name the node that the new nodes are like")
    key = Key(namespace, name) if pod else None
    try:
        context["answer"] = await page.view.workshop.ask(lambda base: experiment.answer(base, key, change))
    except errors.ForbiddenError as error:
        context["refusal"] = str(error)
    except (errors.InvalidValueError, errors.DecodeError) as error:
        context["problem"] = str(error)
