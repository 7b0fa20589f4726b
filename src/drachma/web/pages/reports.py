"""Reports: results of simulations and replays that a user has as files, shown like the other pages.

The browser sends the text of the file. It is read, shown and forgotten.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from starlette.responses import Response

from drachma import errors
from drachma.simulate.timeline import durations
from drachma.simulate.timeline import page as reportpage
from drachma.simulate.timeline.report import Report
from drachma.web import experiment, signin
from drachma.web.page import Page

_MOST_BODY: Final = 16 * 1024 * 1024
_MOST_REPORTS: Final = 50


class _Several(msgspec.Struct):
    reports: list[Report]


class _Outcome(msgspec.Struct):
    node: str = ""
    reasons: str = ""
    error: str = ""


class _Difference(msgspec.Struct, rename="camel"):
    decision: int
    time: str
    pod: str
    recorded: _Outcome
    replayed: _Outcome
    explanation: Any = None
    recorded_node: str = ""


class Replay(msgspec.Struct):
    """Result of ``drachma replay -o json``."""

    decisions: int
    difference: _Difference | None = None


async def show(page: Page) -> Response:
    """Return the form, and the report that it was sent with."""
    page.query()
    context: dict[str, Any] = {"simulations": [], "figures": [], "replay": None, "explanation": "", "problem": ""}
    if page.request.method == "POST":
        form = await signin.read_form(page.request, most=_MOST_BODY)
        signin.check_form(form, page.session)
        try:
            content = read(form.get("report", ""))
        except errors.DecodeError as error:
            context["problem"] = str(error)
        else:
            if isinstance(content, Replay):
                context["replay"] = content
                if content.difference is not None and content.difference.explanation is not None:
                    text = msgspec.json.format(msgspec.json.encode(content.difference.explanation), indent=2)
                    context["explanation"] = text.decode()
            else:
                context["simulations"] = content
                context["figures"] = [
                    (each.title, experiment.as_data_url(each.document)) for each in reportpage.figures(content)
                ]
    return page.render("reports.html", show=durations.show, **context)


def read(text: str) -> list[Report] | Replay:
    """Return the reports of a document in JSON. Raises errors.DecodeError for other texts."""
    if not text.strip():
        raise errors.DecodeError("report: the file is empty")
    try:
        document = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise errors.DecodeError(f"report: expected the output of drachma simulate run -o json: {error}") from None
    if not isinstance(document, dict):
        raise errors.DecodeError("report: expected an object, as drachma simulate run -o json prints it")
    try:
        if "decisions" in document:
            return msgspec.convert(document, Replay)
        several = msgspec.convert(document if "reports" in document else {"reports": [document]}, _Several)
    except msgspec.ValidationError as error:
        raise errors.DecodeError(f"report: {error}") from None
    if not 1 <= len(several.reports) <= _MOST_REPORTS:
        raise errors.DecodeError(f"report: has {len(several.reports)} simulations, expected 1 to {_MOST_REPORTS}")
    return several.reports
