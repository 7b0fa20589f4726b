"""The overview page, and the namespaces that a user adds to it."""

from __future__ import annotations

from typing import Final

from starlette.responses import RedirectResponse, Response

from drachma import errors
from drachma.api import node, pod, resourceclaim, resourceslice
from drachma.values import names
from drachma.web import charts, overview, signin
from drachma.web.page import Page
from drachma.web.rows import DeviceState

_KINDS: Final = (pod.Pod, resourceclaim.ResourceClaim, resourceslice.ResourceSlice, node.Node)


async def show(page: Page) -> Response:
    """Return the overview."""
    page.query()
    model = page.view.model
    problems, total = overview.find_problems(model, page.now)
    usage = overview.measure(model)
    return page.render(
        "overview.html",
        topics="pods claims devices nodes queues access",
        usage=usage,
        states=[(state, usage.states[state]) for state in DeviceState if usage.states[state]],
        problems=problems,
        total_problems=total,
        history=charts.history(model.history, page.now),
        refusals=[text for kind in _KINDS if (text := page.view.refusal(kind))],
    )


async def add_namespace(page: Page) -> Response:
    """Read one more namespace, for users who may not list namespaces."""
    form = await signin.read_form(page.request)
    signin.check_form(form, page.session)
    name = form.get("namespace", "").strip()
    if problems := names.dns1123_label(name):
        raise errors.InvalidValueError(f"namespace {name[:100]!r}: {problems[0]}")
    page.view.add_namespace(name)
    return RedirectResponse(signin.safe_path(form.get("next", "/")), status_code=303)
