"""The options of a request for a pod's log, by upstream's rules."""

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
    """Which part of which log is wanted; what is None was not asked for."""

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
        """How a node is asked for it."""
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
    """The options of a request about the pod of a name.

    Raises:
        status.StatusError: they cannot be read, or contradict each other.
    """
    try:
        asked = PodLogOptions(
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
    if asked.since_time is not None and instants.parse_timestamp(asked.since_time) is None:
        shown = quotation.quote(asked.since_time)
        raise status.bad_request(f'parsing time {shown} as "2006-01-02T15:04:05Z07:00": cannot parse {shown}')
    problems = list(_problems(asked))
    if problems:
        raise status.invalid("PodLogOptions", name, group="", causes=problems)
    return asked


def _problems(asked: PodLogOptions) -> fielderror.Errors:
    if asked.tail_lines is not None and asked.tail_lines < 0:
        yield fielderror.invalid(Path("tailLines"), asked.tail_lines, "must be greater than or equal to 0")
    if asked.limit_bytes is not None and asked.limit_bytes < 1:
        yield fielderror.invalid(Path("limitBytes"), asked.limit_bytes, "must be greater than 0")
    if asked.since_seconds is not None and asked.since_time is not None:
        yield fielderror.forbidden(Path(""), "at most one of `sinceTime` or `sinceSeconds` may be specified")
    elif asked.since_seconds is not None and asked.since_seconds < 1:
        yield fielderror.invalid(Path("sinceSeconds"), asked.since_seconds, "must be greater than 0")
    if asked.stream not in _STREAMS:
        yield fielderror.not_supported(Path("stream"), asked.stream, _STREAMS)
    if asked.stream != "All" and asked.tail_lines is not None:
        yield fielderror.forbidden(Path(""), "`tailLines` and specific `stream` are mutually exclusive for now")


def _text(query: Query, name: str) -> str:
    values = query.get(name)
    return values[0] if values else ""
