"""Queues: the tree of cohorts with quota and usage, pending workloads in order, and the page of one workload."""

from __future__ import annotations

from typing import Any
from urllib import parse

from starlette.responses import Response

from drachma import errors
from drachma.queueing import explanation
from drachma.queueing.component import resources
from drachma.simulate.timeline import durations
from drachma.web import forecasts, queuetree
from drachma.web.page import Page
from drachma.web.pages import pods


async def show(page: Page) -> Response:
    """Return all queues."""
    assume = page.query("assume").text("assume", most=20)
    if assume:
        durations.parse(assume, title="parameter 'assume'")
    model = page.view.model
    scope = page.view.scopes.get(resources.CLUSTER_QUEUES.qualified)
    return page.render(
        "queues.html",
        topics="queues access",
        is_served=scope is None or scope.is_served,
        trees=queuetree.build(model),
        pending=queuetree.pending(model),
        assume=assume,
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
    except errors.ForbiddenError as error:
        context["refusal"] = str(error)
    except errors.ObjectNotFoundError:
        pass  # A cluster without queues has no waiting workloads.
    return page.render("estimates.html", assume=assume, **context)


async def show_workload(page: Page) -> Response:
    """Return the page of one workload, with the reason why it waits."""
    page.query()
    key = pods.key_of(page)
    workload = page.view.model.workloads.get(key)
    if workload is None:
        raise errors.ObjectNotFoundError({"message": f"workload {key}: does not exist, or you may not read it"})
    context: dict[str, Any] = {"refusal": "", "explained": [], "lines": []}
    try:
        explained = await page.view.workshop.explain_workload(key, page.now)
        context["explained"] = explained
        context["lines"] = [explanation.render(each) for each in explained]
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
