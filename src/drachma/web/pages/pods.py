"""Pods: the list with its filters, the page of one pod, its explanation, and its deletion."""

from __future__ import annotations

import operator
from typing import Any
from urllib import parse

from starlette.responses import Response

from drachma import errors
from drachma.api import event, pod, resourceclaim
from drachma.client import Selection
from drachma.queueing.kinds import workload
from drachma.runtime.cache import Key
from drachma.web import deletion, explanationtree, paging, rendering, timeline
from drachma.web.page import Page
from drachma.web.rows import PodRow, PodStatus


async def show_list(page: Page) -> Response:
    """Return the pods that match the filters in the address."""
    query = page.query("q", "namespace", "status", "node", "class", "queue", "page")
    search = query.text("q", most=300).lower()
    namespace, node, queue = query.text("namespace"), query.text("node"), query.text("queue")
    if namespace:
        await page.view.enter_namespace(namespace, pod.Pod)
    status = query.choice("status", [each.value for each in PodStatus])
    device_class = query.text("class")
    model = page.view.model
    listed = [
        row
        for row in model.pods.values()
        if (not namespace or row.key.namespace == namespace)
        and (not status or row.status == status)
        and (not node or row.node == node)
        and (not queue or row.queue == queue)
        and (not search or search in _text(row))
        and (not device_class or device_class in _classes(page, row))
    ]
    listed.sort(key=operator.attrgetter("rank"))
    part = paging.cut(listed, query, "/pods")
    return page.render(
        "pods.html",
        topics="pods claims access",
        part=part,
        devices={row.key: _devices(page, row) for row in part.rows},
        namespaces=sorted({key.namespace for key in model.pods}),
        statuses=list(PodStatus),
        classes=sorted({name for row in model.claims.values() for name in row.classes}),
        chosen={
            "q": query.text("q"),
            "namespace": namespace,
            "status": status,
            "node": node,
            "class": device_class,
            "queue": queue,
        },
        refusals=[text for kind in (pod.Pod,) if (text := page.view.refusal(kind))],
    )


def _text(row: PodRow) -> str:
    return f"{row.key} {row.node} {row.reason} {row.queue}".lower()


def _classes(page: Page, row: PodRow) -> set[str]:
    claims = page.view.model.claims
    keys = (Key(row.key.namespace, name) for name in row.claims)
    return {name for key in keys if key in claims for name in claims[key].classes}


def _devices(page: Page, row: PodRow) -> list[str]:
    claims = page.view.model.claims
    keys = (Key(row.key.namespace, name) for name in row.claims)
    return [device.device for key in keys if key in claims for device in claims[key].devices]


def key_of(page: Page) -> Key:
    """Return the namespace and name in the path of a page."""
    return Key(page.request.path_params["namespace"], page.request.path_params["name"])


async def show(page: Page) -> Response:
    """Return the page of one pod."""
    page.query()
    key = key_of(page)
    await page.view.enter_namespace(key.namespace, pod.Pod)
    subject = page.view.find(pod.Pod, key)
    row = page.view.model.pods.get(key)
    if subject is None or row is None:
        raise errors.ObjectNotFoundError({"message": f"pod {key}: does not exist, or you may not read it"})
    claims = [claim for name in row.claims if (claim := page.view.model.claim(Key(key.namespace, name))) is not None]
    queued = _workload(page, subject)
    return page.render(
        "pod.html",
        topics="pods claims queues access",
        key=key,
        row=row,
        steps=timeline.steps(subject, claims, queued),
        reports=await _events(page, subject),
        claims=claims,
        entries=_entries(subject),
        queued=queued,
        queued_key=Key(queued.metadata.namespace, queued.metadata.name) if queued is not None else None,
        explanation_link=f"{rendering.href(key, 'pods')}/explanation",
        whatif_link="/whatif?" + parse.urlencode({"pod": str(key)}),
    )


def _entries(subject: pod.Pod) -> list[tuple[str, str]]:
    """Return the claims of a pod's spec: name, and the claim or template that it refers to."""
    return [
        (each.name, each.resource_claim_name or f"template {each.resource_claim_template_name}")
        for each in subject.spec.resource_claims
    ]


def _workload(page: Page, subject: pod.Pod) -> workload.Workload | None:
    """Return the workload that a pod belongs to: its own, or that of its owner."""
    owners = {each.uid for each in subject.metadata.owner_references} | {subject.metadata.uid}
    for each in page.view.model.workloads.values():
        if each.metadata.namespace == subject.metadata.namespace and any(
            owner.uid in owners for owner in each.metadata.owner_references
        ):
            return each
    return None


async def _events(page: Page, subject: pod.Pod) -> list[timeline.Report]:
    """Return the events of a pod; none if the user may not read events."""
    selection = Selection(subject.metadata.namespace, fields=f"involvedObject.uid={subject.metadata.uid}")
    try:
        listing = await page.view.client.list(event.Event, selection, limit=200)
    except (errors.ForbiddenError, errors.BadRequestError):
        return []
    return timeline.reports(listing.items)


async def explain(page: Page) -> Response:
    """Return the explanation of a pod."""
    page.query()
    key = key_of(page)
    if key not in page.view.model.pods:
        raise errors.ObjectNotFoundError({"message": f"pod {key}: does not exist, or you may not read it"})
    context: dict[str, Any] = {"refusal": "", "explained": None, "trees": [], "bars": [], "reasons": []}
    try:
        answer = await page.view.workshop.explain_pod(key)
    except errors.ForbiddenError as error:
        context["refusal"] = str(error)
        answer = None
    if answer is not None:
        context["explained"] = answer.explained
        context["bars"] = explanationtree.node_bars(answer.explained)
        context["reasons"] = explanationtree.reasons(answer.explained)
        context["trees"] = [
            (explanationtree.device_branch(each.explanation, each.also_on), fixes)
            for each, fixes in zip(answer.explained.reports, answer.fixes, strict=True)
        ]
    whatif_link = "/whatif?" + parse.urlencode({"pod": str(key)})
    row = page.view.model.pods[key]
    return page.render("explanation.html", topics="", key=key, row=row, whatif_link=whatif_link, **context)


async def delete(page: Page) -> Response:
    """Ask whether to delete a pod, or delete it."""
    key = key_of(page)
    return await deletion.respond(
        page,
        pod.Pod,
        key,
        back="/pods?" + parse.urlencode({"namespace": key.namespace}),
        warning="Its containers are stopped, and claims that were generated for it are deleted with their data.",
    )


def owner_text(claim: resourceclaim.ResourceClaim) -> str:
    """Return the owner of a claim in words."""
    return ", ".join(f"{each.kind} {each.name}" for each in claim.metadata.owner_references)
