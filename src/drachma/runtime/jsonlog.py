"""Logs as JSON, a line each: what collectors of logs in clusters read."""

import datetime as dt
import logging
from typing import Any, Final

import msgspec

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """JSON with time, level, logger and message, and any extra fields of a record."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        line: dict[str, Any] = {
            "time": dt.datetime.fromtimestamp(record.created, dt.UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {key: value for key, value in vars(record).items() if key not in _STANDARD}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=str).decode()


def handler(*, is_json: bool) -> logging.Handler:
    """Return a handler that writes to standard error, as JSON or as text."""
    stream_handler = logging.StreamHandler()
    text = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    stream_handler.setFormatter(JsonFormatter() if is_json else text)
    return stream_handler


def set_up(*, level: str, is_json: bool) -> None:
    """Send the logs of the whole process to standard error."""
    logging.basicConfig(level=level.upper(), handlers=[handler(is_json=is_json)], force=True)
