"""What-if: the effect of a change of a claim, of quota or of the cluster, simulated before it is made."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from drachma import errors
from drachma.runtime.cache import Key
from drachma.simulate.defragmentation import Goal
from drachma.web import experiment, forecasts
from drachma.web.models import Model
from drachma.web.page import Page

_MOST_NODES: Final = 100
_MOST_SHOWN: Final = 500


_FIELDS: Final = ("pod", "request", "count", "class", "selector", "like", "nodes")
_QUOTA_FIELDS: Final = ("queue", "resource", "flavor", "quota")
_FORMS: Final = ("pod", "quota", "moves")


async def show(page: Page) -> Response:
    """Return the forms, and the answer if the address has a question."""
    query = page.query(*_FIELDS, "remove_selectors", *_QUOTA_FIELDS, "defragment", "wholes", "form")
    texts = {name: query.text(name, most=10_240) for name in (*_FIELDS, *_QUOTA_FIELDS)}
    removes = query.choice("remove_selectors", ("yes",))
    goal = query.choice("defragment", list(Goal))
    wholes = query.number("wholes", default=0, least=1, most=_MOST_NODES)
    change = experiment.Change(
        request=texts["request"],
        count=query.number("count", default=0, least=1, most=1000),
        device_class=texts["class"],
        selector="" if removes else texts["selector"] or None,
        like=texts["like"],
        new_nodes=query.number("nodes", default=0, least=1, most=_MOST_NODES),
    )
    context: dict[str, Any] = {"answer": None, "quota": None, "moves": None, "refusal": "", "problem": ""}
    try:
        if texts["pod"] or change.new_nodes:
            context["answer"] = await _answer(page, texts["pod"], change)
        elif texts["queue"] or texts["quota"]:
            context["quota"] = await _quota(page, texts)
        elif goal:
            context["moves"] = await page.view.workshop.ask(
                lambda base: experiment.defragment(base, Goal(goal), wholes or None)
            )
    except errors.ForbiddenError as error:
        context["refusal"] = str(error)
    except _QuestionError as error:
        context["problem"] = str(error)
    model = page.view.model
    waiting_keys = sorted(model.waiting)
    question = "moves" if goal else "quota" if texts["queue"] or texts["quota"] else "pod"
    return page.render(
        "whatif.html",
        form=query.choice("form", _FORMS, question),
        chosen=texts,
        removes=removes,
        goal=goal,
        wholes=wholes or "",
        pods=waiting_keys[:_MOST_SHOWN],
        classes=sorted(model.classes),
        nodes=sorted(model.nodes)[:_MOST_SHOWN],
        queues=sorted(model.cluster_queues)[:_MOST_SHOWN],
        resources=sorted(_resources(model)),
        **context,
    )


def _resources(model: Model) -> set[str]:
    """Return the resources that cluster queues have quota for."""
    return {
        resource
        for queue in model.cluster_queues.values()
        for group in queue.spec.resource_groups
        for resource in group.covered_resources
    }


class _QuestionError(errors.DrachmaError):
    """Question about something that does not exist."""


async def _quota(page: Page, texts: dict[str, str]) -> forecasts.QuotaAnswer:
    for name in ("queue", "resource", "quota"):
        if not texts[name]:
            raise errors.InvalidValueError(
                f"parameter {name!r}: a change of quota needs a queue, a resource and a quota"
            )
    change = forecasts.QuotaChange(
        queue=texts["queue"], resource=texts["resource"], flavor=texts["flavor"], nominal=texts["quota"]
    )
    try:
        return await page.view.workshop.ask_future(page.now, lambda cluster: forecasts.change_quota(cluster, change))
    except (errors.InvalidValueError, errors.ObjectNotFoundError) as error:
        raise _QuestionError(str(error)) from None


async def _answer(page: Page, pod: str, change: experiment.Change) -> experiment.Answer:
    namespace, slash, name = pod.partition("/")
    if pod and not (namespace and slash and name):
        raise errors.InvalidValueError(f"parameter 'pod': {pod[:300]!r} is not NAMESPACE/NAME")
    if change.new_nodes and not change.like:
        raise errors.InvalidValueError("parameter 'like': name the node that the new nodes are like")
    key = Key(namespace, name) if pod else None
    try:
        return await page.view.workshop.ask(lambda base: experiment.answer(base, key, change))
    except (errors.InvalidValueError, errors.DecodeError) as error:
        raise _QuestionError(str(error)) from None
