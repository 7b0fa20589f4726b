"""A request for a container's log: which run is meant, and which part of what it wrote."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

from drachma.node.containerstate import Record, Running, Terminated, Waiting
from drachma.node.logs import selection

_PULLS = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


class LogRequestError(Exception):
    """The log is not there, or the request makes no sense; the message is the kubelet's."""


def run_of(record: Record, *, container: str, pod: str, previous: bool) -> str:
    """The run of a container whose log is asked for, by its name in the runtime.

    Raises:
        LogRequestError: there is none.
    """
    about = f'container "{container}" in pod "{pod}"'
    if previous:
        if record.last is None:
            raise LogRequestError(f"previous terminated {about} not found")
        return record.last.id
    match record.state:
        case Running(id=name) | Terminated(id=name):
            return name
        case Waiting(reason=reason):
            if record.last is not None:
                return record.last.id
            raise LogRequestError(f"{about} is waiting to start: {_PULLS.get(reason, reason)}")


def selection_of(query: Mapping[str, str], *, now: dt.datetime) -> selection.Selection:
    """Which part of a log a query asks for.

    Raises:
        LogRequestError: the query makes no sense.
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
    """Whether the run before the last is meant."""
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
