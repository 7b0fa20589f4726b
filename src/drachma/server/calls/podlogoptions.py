"""Options of a request for a pod's log, by upstream's rules."""

from typing import Final

import msgspec

from drachma import errors
from drachma.cel.runtime import instants
from drachma.server import status
from drachma.server.calls import options
from drachma.server.calls.options import Query
from drachma.validation import fielderror
from drachma.validation.path import Path
from drachma.values import quotation

_STREAMS: Final = ("All", "Stderr", "Stdout")


class PodLogOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Container and part of a log; None means not set."""

    container: str = ""
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    since_seconds: int | None = None
    since_time: str | None = None
    tail_lines: int | None = None
    limit_bytes: int | None = None
    stream: str = "All"

    @property
    def query(self) -> dict[str, str]:
        """Return the query for the node."""
        flags = {"follow": self.follow, "previous": self.previous, "timestamps": self.timestamps}
        values = {
            "sinceSeconds": self.since_seconds,
            "sinceTime": self.since_time,
            "tailLines": self.tail_lines,
            "limitBytes": self.limit_bytes,
        }
        return {
            **{name: "true" for name, is_set in flags.items() if is_set},
            **{name: str(value) for name, value in values.items() if value is not None},
            "stream": self.stream,
        }


def read(query: Query, name: str) -> PodLogOptions:
    """Read the options of a request for the log of a pod.

    Raises:
        status.StatusError: options cannot be parsed, or contradict each other.
    """
    try:
        log_options = PodLogOptions(
            container=_text(query, "container"),
            follow=options.boolean(query, "follow"),
            previous=options.boolean(query, "previous"),
            timestamps=options.boolean(query, "timestamps"),
            since_seconds=options.integer(query, "sinceSeconds"),
            since_time=_text(query, "sinceTime") or None,
            tail_lines=options.integer(query, "tailLines"),
            limit_bytes=options.integer(query, "limitBytes"),
            stream=_text(query, "stream") or "All",
        )
    except errors.InvalidValueError as error:
        raise status.bad_request(str(error)) from None
    if log_options.since_time is not None and instants.parse_timestamp(log_options.since_time) is None:
        quoted = quotation.quote(log_options.since_time)
        raise status.bad_request(f'parsing time {quoted} as "2006-01-02T15:04:05Z07:00": cannot parse {quoted}')
    problems = list(_problems(log_options))
    if problems:
        raise status.invalid("PodLogOptions", name, group="", causes=problems)
    return log_options


def _problems(log_options: PodLogOptions) -> fielderror.Errors:
    if log_options.tail_lines is not None and log_options.tail_lines < 0:
        yield fielderror.invalid(Path("tailLines"), log_options.tail_lines, "must be greater than or equal to 0")
    if log_options.limit_bytes is not None and log_options.limit_bytes < 1:
        yield fielderror.invalid(Path("limitBytes"), log_options.limit_bytes, "must be greater than 0")
    if log_options.since_seconds is not None and log_options.since_time is not None:
        yield fielderror.forbidden(Path(""), "at most one of `sinceTime` or `sinceSeconds` may be specified")
    elif log_options.since_seconds is not None and log_options.since_seconds < 1:
        yield fielderror.invalid(Path("sinceSeconds"), log_options.since_seconds, "must be greater than 0")
    if log_options.stream not in _STREAMS:
        yield fielderror.not_supported(Path("stream"), log_options.stream, _STREAMS)
    if log_options.stream != "All" and log_options.tail_lines is not None:
        yield fielderror.forbidden(Path(""), "`tailLines` and specific `stream` are mutually exclusive for now")


def _text(query: Query, name: str) -> str:
    values = query.get(name)
    return values[0] if values else ""
