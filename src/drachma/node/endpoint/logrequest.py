"""Requests for the log of a container: the run that the client means, and the part of its log."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

from drachma.node.logs import selection
from drachma.node.pods.containerstate import Record, Running, Terminated, Waiting

_PULLS = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


class LogRequestError(Exception):
    """The log does not exist, or the request is invalid; the message is the kubelet's."""


def find_run(record: Record, *, container: str, pod: str, previous: bool) -> str:
    """Return the runtime id of the run whose log the client requests.

    Raises:
        LogRequestError: there is no such run.
    """
    subject = f'container "{container}" in pod "{pod}"'
    if previous:
        if record.last is None:
            raise LogRequestError(f"previous terminated {subject} not found")
        return record.last.id
    match record.state:
        case Running(id=name) | Terminated(id=name):
            return name
        case Waiting(reason=reason):
            if record.last is not None:
                return record.last.id
            raise LogRequestError(f"{subject} is waiting to start: {_PULLS.get(reason, reason)}")


def parse_selection(query: Mapping[str, str], *, now: dt.datetime) -> selection.Selection:
    """Return the part of a log that a query selects.

    Raises:
        LogRequestError: the query is invalid.
    """
    since: dt.datetime | None = None
    seconds = _number(query, "sinceSeconds")
    if seconds is not None:
        since = now - dt.timedelta(seconds=seconds)
    elif query.get("sinceTime"):
        try:
            since = dt.datetime.fromisoformat(query["sinceTime"])
        except ValueError:
            raise LogRequestError('{"message": "Unable to decode query."}') from None
        if since.tzinfo is None:
            raise LogRequestError('{"message": "Unable to decode query."}')
    return selection.Selection(
        follow=_flag(query, "follow"),
        timestamps=_flag(query, "timestamps"),
        tail=_number(query, "tailLines"),
        since=since,
        limit_bytes=_number(query, "limitBytes"),
        stream=query.get("stream") or selection.ALL,
    )


def is_previous(query: Mapping[str, str]) -> bool:
    """Return True if the client requests the log of the previous run."""
    return _flag(query, "previous")


def _flag(query: Mapping[str, str], name: str) -> bool:
    return query.get(name, "false").lower() not in ("", "0", "false")


def _number(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name)
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise LogRequestError('{"message": "Unable to decode query."}')
    return int(text)
