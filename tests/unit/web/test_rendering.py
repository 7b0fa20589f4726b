"""Texts for people: ages, numbers, and characters that could deceive."""

import datetime as dt

import pytest

from drachma.claims.identity import DeviceID
from drachma.runtime.cache import Key
from drachma.web import rendering

NOW = dt.datetime(2026, 11, 18, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("plain", "plain", id="plain"),
        pytest.param("a\u202eb", "a⟨U+202E⟩b", id="right-to-left-override"),
        pytest.param("a\u0000b", "a⟨U+0000⟩b", id="control"),
        pytest.param("a\u200bb", "a⟨U+200B⟩b", id="zero-width"),
        pytest.param("two\nlines", "two\nlines", id="line-end"),
        pytest.param("👩\u200d🚀 äß", "👩\u200d🚀 äß", id="emoji-and-letters"),
    ],
)
def test_dangerous_characters_are_shown_by_their_code(text: str, want: str) -> None:
    assert rendering.visible(text) == want


@pytest.mark.parametrize(
    ("seconds", "want"), [(5, "5s"), (119, "119s"), (185, "3m5s"), (3600, "60m"), (4 * 3600, "4h"), (3 * 86400, "3d")]
)
def test_ages(seconds: int, want: str) -> None:
    assert rendering.age(NOW - dt.timedelta(seconds=seconds), NOW) == want


@pytest.mark.parametrize(("share", "want"), [(0.0, "0%"), (0.001, "<1%"), (0.5, "50%"), (0.999, ">99%"), (1.0, "100%")])
def test_shares(share: float, want: str) -> None:
    assert rendering.percent(share) == want


def test_links_quote_names() -> None:
    assert rendering.href(Key("a b", "c/d?e"), "pods") == "/pods/a%20b/c%2Fd%3Fe"
    assert rendering.device_href(DeviceID("d", "p&q", "n")) == "/device?driver=d&pool=p%26q&name=n"


def test_templates_escape_everything() -> None:
    page = rendering.Renderer().page(
        "error.html",
        {
            "title": "<b>",
            "message": "<script>\u202e",
            "theme": "",
            "cluster": "&",
            "assets": "",
            "path": "/",
            "has_query": True,
            "now": NOW,
        },
    )
    assert "<script>" not in page
    assert "&lt;script&gt;⟨U+202E⟩" in page
