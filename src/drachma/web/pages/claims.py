"""Claims: the list with its filters, the page of one claim, its explanation, and its deletion."""

from __future__ import annotations

from typing import Any, Final, NamedTuple
from urllib import parse

from starlette.responses import Response

from drachma import errors
from drachma.allocator.explanation import report
from drachma.api import resourceclaim
from drachma.claims import identity
from drachma.runtime.cache import Key
from drachma.web import deletion, explanationtree, paging
from drachma.web.page import Page
from drachma.web.pages import pods
from drachma.web.rows import ClaimRow, ClaimState, DeviceCell

_ORDER: Final = {
    state: number
    for number, state in enumerate((ClaimState.PENDING, ClaimState.DELETED, ClaimState.ALLOCATED, ClaimState.RESERVED))
}


class Way(NamedTuple):
    """An alternative of a request: what it asks for, and the devices that it got."""

    name: str
    device_class: str
    amount: str
    selectors: tuple[str, ...]
    tolerations: tuple[str, ...]
    capacity: tuple[tuple[str, str], ...]
    results: tuple[tuple[resourceclaim.DeviceRequestAllocationResult, DeviceCell | None], ...]
    reason: str
    """Why it got these devices, or nothing."""


async def show_list(page: Page) -> Response:
    """Return the claims that match the filters in the address."""
    query = page.query("q", "namespace", "state", "class", "page")
    search = query.text("q", most=300).lower()
    namespace, device_class = query.text("namespace"), query.text("class")
    if namespace:
        await page.view.enter_namespace(namespace, resourceclaim.ResourceClaim)
    state = query.choice("state", [each.value for each in ClaimState])
    model = page.view.model
    listed = [
        row
        for row in model.claims.values()
        if (not namespace or row.key.namespace == namespace)
        and (not state or row.state == state)
        and (not device_class or device_class in row.classes)
        and (not search or search in _text(row))
    ]
    listed.sort(key=lambda row: (_ORDER[row.state], row.key))
    return page.render(
        "claims.html",
        topics="claims access",
        part=paging.cut(listed, query, "/claims"),
        namespaces=sorted({key.namespace for key in model.claims}),
        states=list(ClaimState),
        classes=sorted({name for row in model.claims.values() for name in row.classes}),
        chosen={"q": query.text("q"), "namespace": namespace, "state": state, "class": device_class},
        refusals=[text for kind in (resourceclaim.ResourceClaim,) if (text := page.view.refusal(kind))],
    )


def _text(row: ClaimRow) -> str:
    return f"{row.key} {' '.join(row.pods)} {' '.join(row.classes)} {' '.join(map(str, row.devices))}".lower()


async def show(page: Page) -> Response:
    """Return the page of one claim."""
    page.query()
    key = pods.key_of(page)
    await page.view.enter_namespace(key.namespace, resourceclaim.ResourceClaim)
    claim = page.view.model.claim(key)
    row = page.view.model.claims.get(key)
    if claim is None or row is None:
        raise errors.ObjectNotFoundError({"message": f"claim {key}: does not exist, or you may not read it"})
    return page.render(
        "claim.html",
        topics="claims devices access",
        key=key,
        row=row,
        owner=pods.owner_text(claim),
        ways=[way for request in claim.spec.devices.requests for way in _ways(page, claim, request)],
        constraints=[
            (
                "matchAttribute" if each.match_attribute else "distinctAttribute",
                each.match_attribute or each.distinct_attribute or "",
                ", ".join(each.requests) or "all requests",
            )
            for each in claim.spec.devices.constraints
        ],
        pods=[Key(key.namespace, name) for name in row.pods],
        reports=claim.status.devices,
        explanation_link=f"/claims/{parse.quote(key.namespace, safe='')}/{parse.quote(key.name, safe='')}/explanation",
    )


def _ways(page: Page, claim: resourceclaim.ResourceClaim, request: resourceclaim.DeviceRequest) -> list[Way]:
    if request.exactly is not None:
        return [_way(page, claim, request.name, request.exactly)]
    return [_way(page, claim, f"{request.name}/{each.name}", each) for each in request.first_available]


def _way(
    page: Page,
    claim: resourceclaim.ResourceClaim,
    name: str,
    way: resourceclaim.ExactDeviceRequest | resourceclaim.DeviceSubRequest,
) -> Way:
    allocation = claim.status.allocation
    results = tuple(
        (each, page.view.model.cell(identity.device_of(each)))
        for each in (allocation.devices.results if allocation is not None else ())
        if each.request == name
    )
    selectors = tuple(str(each.cel.expression) for each in way.selectors if each.cel is not None)
    return Way(
        name,
        way.device_class_name,
        "all that match" if way.allocation_mode == "All" else str(way.count or 1),
        selectors,
        tuple(f"{each.key} {each.operator} {each.value or ''} {each.effect or ''}" for each in way.tolerations),
        tuple((key, str(value)) for key, value in (way.capacity.requests.items() if way.capacity else ())),
        results,
        _reason(page, name, way, selectors, is_allocated=bool(results)),
    )


def _reason(
    page: Page,
    name: str,
    way: resourceclaim.ExactDeviceRequest | resourceclaim.DeviceSubRequest,
    selectors: tuple[str, ...],
    *,
    is_allocated: bool,
) -> str:
    if not is_allocated:
        return "the first alternative that fits is used" if "/" in name else ""
    device_class = page.view.model.classes.get(way.device_class_name)
    conditions = [f"class {way.device_class_name}"]
    if device_class is not None:
        conditions += [str(each.cel.expression) for each in device_class.spec.selectors if each.cel is not None]
    conditions += selectors
    return f"first free devices, in the order of pools, that match {' and '.join(conditions)}"


async def explain(page: Page) -> Response:
    """Return the explanation of a claim that is not allocated."""
    page.query()
    key = pods.key_of(page)
    if key not in page.view.model.claims:
        raise errors.ObjectNotFoundError({"message": f"claim {key}: does not exist, or you may not read it"})
    context: dict[str, Any] = {"refusal": "", "trees": [], "unexplained": 0, "does_fit": False}
    try:
        answer = await page.view.workshop.explain_claim(key)
    except errors.ForbiddenError as error:
        context["refusal"] = str(error)
        answer = None
    if answer is not None:
        context["does_fit"] = any(each.explanation.outcome is report.Outcome.FITS for each in answer.surveyed.groups)
        context["unexplained"] = len(answer.surveyed.unexplained)
        context["trees"] = [
            (explanationtree.device_branch(each.explanation, each.others), fixes)
            for each, fixes in zip(answer.surveyed.groups, answer.fixes, strict=True)
        ]
    return page.render("claimexplanation.html", key=key, **context)


async def delete(page: Page) -> Response:
    """Ask whether to delete a claim, or delete it."""
    key = pods.key_of(page)
    return await deletion.respond(
        page,
        resourceclaim.ResourceClaim,
        key,
        back="/claims?" + parse.urlencode({"namespace": key.namespace}),
        warning="Its devices are freed when no pod uses it any more.",
    )
