"""Deletion of an object, the only write of the dashboard: the user must be allowed to, and confirm it."""

from __future__ import annotations

from typing import Any

from starlette.responses import RedirectResponse, Response

from drachma import errors
from drachma.client import patches, target
from drachma.runtime.cache import Key
from drachma.web import permissions, signin
from drachma.web.page import Page


async def respond(page: Page, kind: target.Of[Any], key: Key, *, back: str, warning: str) -> Response:
    """Return the question whether to delete an object, or delete it if the form confirms.

    Raises:
        errors.ForbiddenError: the user may not delete it.
    """
    resource = target.of(kind)
    subject = page.view.find(kind, key)
    if subject is None:
        raise errors.ObjectNotFoundError(
            {"message": f"{resource.qualified} {key}: does not exist, or you may not read it"}
        )
    if not await permissions.may(page.view.client, "delete", kind, namespace=key.namespace, name=key.name):
        raise errors.ForbiddenError({"message": f"{resource.qualified} {key}: you may not delete it"})
    if page.request.method != "POST":
        page.query()
        return page.render(
            "delete.html", kind=resource.kind, key=key, back=back, warning=warning, uid=subject.metadata.uid
        )
    form = await signin.read_form(page.request)
    signin.check_form(form, page.session)
    if form.get("uid") != subject.metadata.uid:
        raise errors.InvalidValueError(
            f"{resource.qualified} {key}: is another object now, which you have not confirmed"
        )
    preconditions = patches.Preconditions(uid=subject.metadata.uid)
    await page.view.client.delete(kind, key.name, namespace=key.namespace, preconditions=preconditions)
    return RedirectResponse(back, status_code=303)
