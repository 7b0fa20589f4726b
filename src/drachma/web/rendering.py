"""Rendering: templates, and the filters with which they show times, numbers and names.

Everything is escaped. Characters that could change how the text around them reads (controls, marks that turn the
direction of writing) are shown as their code, because names and messages come from other people.
"""

from __future__ import annotations

import datetime as dt
import unicodedata
from collections.abc import Mapping
from typing import Any, Final
from urllib import parse

import jinja2

from drachma.claims import identity
from drachma.runtime.cache import Key

_HARMLESS: Final = frozenset("\n\t\u200d\ufe0f")
"""Controls that are kept: line ends, tabs, and the marks inside emoji."""


class Renderer:
    """Templates of the dashboard."""

    def __init__(self) -> None:
        self._environment: Final = jinja2.Environment(
            loader=jinja2.PackageLoader("drachma.web", "templates"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.finalize = _finalize
        self._environment.filters |= {
            "age": age,
            "clock": clock_text,
            "hour": hour_text,
            "brief": brief,
            "iso": iso_text,
            "group": group_digits,
            "percent": percent,
            "href": href,
            "device_href": device_href,
        }

    def page(self, template: str, context: Mapping[str, Any]) -> str:
        """Return a page as HTML."""
        return self._environment.get_template(template).render(context)


def _finalize(value: Any) -> Any:
    """Show dangerous characters of a text by their code; other values are shown as they are."""
    if type(value) is str:
        return visible(value)
    return visible(str(value)) if isinstance(value, str) and not hasattr(value, "__html__") else value


def visible(text: str) -> str:
    """Return a text with invisible and direction-changing characters replaced by their code."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        f"⟨U+{ord(char):04X}⟩"
        if char not in _HARMLESS and unicodedata.category(char) in ("Cc", "Cf", "Co", "Cs")
        else char
        for char in text
    )


def age(since: dt.datetime | None, now: dt.datetime) -> str:
    """Return the time since a moment, as kubectl shows ages."""
    if since is None:
        return "unknown"
    seconds = max(int((now - since).total_seconds()), 0)
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return f"{minutes}m{seconds % 60}s" if seconds % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    return f"{days}d"


def clock_text(moment: dt.datetime | None) -> str:
    """Return a time of day in UTC with its date."""
    return "" if moment is None else moment.astimezone(dt.UTC).strftime("%Y-%m-%d %H:%M:%S")


def hour_text(moment: dt.datetime) -> str:
    """Return a time of day in UTC."""
    return moment.astimezone(dt.UTC).strftime("%H:%M")


def brief(reason: str) -> str:
    """Return a reason without the scheduler's sentence about preemption, which repeats the number of nodes."""
    return reason.partition(" preemption: ")[0].removesuffix(".")


def iso_text(moment: dt.datetime | None) -> str:
    """Return a time for machines."""
    return "" if moment is None else moment.astimezone(dt.UTC).isoformat(timespec="seconds")


def group_digits(number: int) -> str:
    """Return a number with separated thousands."""
    return f"{number:,}".replace(",", "\u202f") if abs(number) >= 10_000 else str(number)


def percent(share: float) -> str:
    """Return a share in percent; a share that is not quite nothing or everything does not look like it."""
    if 0 < share < 0.01:
        return "<1%"
    return ">99%" if 0.995 <= share < 1 else f"{share:.0%}"


def href(key: Key, kind: str) -> str:
    """Return the link to the page of a pod, claim or workload."""
    return f"/{kind}/{parse.quote(key.namespace, safe='')}/{parse.quote(key.name, safe='')}"


def device_href(device: identity.DeviceID) -> str:
    """Return the link to the page of a device."""
    return "/device?" + parse.urlencode({"driver": device.driver, "pool": device.pool, "name": device.device})
