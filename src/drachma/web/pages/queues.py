"""Queues: the tree of cohorts with quota and usage, pending workloads in order, and the page of one workload."""

from __future__ import annotations

from typing import Any, Final
from urllib import parse

from starlette.responses import Response

from drachma import errors
from drachma.queueing import explanation
from drachma.queueing.component import resources
from drachma.simulate.timeline import durations
from drachma.web import forecasts, queuetree
from drachma.web.page import Page
from drachma.web.pages import pods
from drachma.web.workshop import Estimates

_MOST_SHOWN: Final = 10
"""Waiting workloads that a queue shows next to others."""

_MOST_OPENED: Final = 500
"""Waiting workloads that a queue shows if the address names it."""


async def show(page: Page) -> Response:
    """Return all queues."""
    query = page.query("assume", "queue")
    assume = query.text("assume", most=20)
    if assume:
        durations.parse(assume, title="parameter 'assume'")
    model = page.view.model
    estimates = page.view.workshop.estimates
    is_current = estimates is not None and estimates.assume == assume
    scope = page.view.scopes.get(resources.CLUSTER_QUEUES.qualified)
    return page.render(
        "queues.html",
        topics="queues access",
        is_served=scope is None or scope.is_served,
        trees=queuetree.build(model),
        pending=queuetree.pending(model),
        assume=assume,
        opened=query.text("queue", most=253),
        most_shown=_MOST_SHOWN,
        most_opened=_MOST_OPENED,
        starts=estimates.starts if estimates is not None and is_current else {},
        estimated=estimates.at if estimates is not None and is_current else None,
        estimates_link="/queues/estimates" + (f"?{parse.urlencode({'assume': assume})}" if assume else ""),
        refusals=[
            text
            for kind in (resources.CLUSTER_QUEUES, resources.COHORTS, resources.WORKLOADS)
            if (text := page.view.refusal(kind))
        ],
    )


async def show_estimates(page: Page) -> Response:
    """Return when waiting workloads would start, as ``drachma when`` estimates it."""
    assume = page.query("assume").text("assume", most=20)
    assumed = durations.parse(assume, title="parameter 'assume'") if assume else None
    context: dict[str, Any] = {"refusal": "", "estimates": []}
    try:
        context["estimates"] = await page.view.workshop.ask_future(
            page.now, lambda cluster: forecasts.estimate(cluster, assumed)
        )
        starts = {each.key: each.text for each in context["estimates"]}
        page.view.workshop.estimates = Estimates(assume, page.now, starts)
    except errors.ForbiddenError as error:
        context["refusal"] = str(error)
    except errors.ObjectNotFoundError:
        pass  # A cluster without queues has no waiting workloads.
    return page.render("estimates.html", assume=assume, **context)


async def show_workload(page: Page) -> Response:
    """Return the page of one workload, with the reason why it waits."""
    page.query()
    key = pods.key_of(page)
    await page.view.enter_namespace(key.namespace, resources.WORKLOADS)
    workload = page.view.model.workloads.get(key)
    if workload is None:
        raise errors.ObjectNotFoundError({"message": f"workload {key}: does not exist, or you may not read it"})
    context: dict[str, Any] = {"refusal": "", "answers": []}
    try:
        context["answers"] = [
            (each, explanation.to_document(each)) for each in await page.view.workshop.explain_workload(key, page.now)
        ]
    except errors.ForbiddenError as error:
        context["refusal"] = str(error)
    return page.render(
        "workload.html",
        topics="queues access",
        key=key,
        workload=workload,
        owners=[f"{each.kind} {each.name}" for each in workload.metadata.owner_references],
        **context,
    )
