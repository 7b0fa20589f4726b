"""Drawings: rectangles and texts as an SVG document, written by hand. All that comes from a cluster is escaped."""

from __future__ import annotations

from typing import Final
from xml.sax import saxutils

_FONT: Final = "font-family:system-ui,sans-serif"


class Drawing:
    """A picture that grows downwards."""

    def __init__(self, width: int) -> None:
        self.width: Final = width
        self._height = 0.0
        self._elements: Final[list[str]] = []

    def rectangle(
        self,
        x: float,
        y: float,
        *,
        width: float,
        height: float,
        fill: str,
        border: str = "",
        hint: str = "",
    ) -> None:
        """A rectangle; ``hint`` is shown to who points at it."""
        stroke = f' stroke="{border}"' if border else ""
        body = f"<title>{saxutils.escape(_printable(hint))}</title>" if hint else ""
        place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
        self._elements.append(f'<rect {place} rx="2" fill="{fill}"{stroke}>{body}</rect>')
        self._height = max(self._height, y + height)

    def text(
        self, x: float, y: float, content: str, *, size: int = 12, fill: str = "#111827", anchor: str = "start"
    ) -> None:
        """A line of text; y is where letters stand."""
        attributes = f'font-size="{size}" fill="{fill}" text-anchor="{anchor}"'
        self._elements.append(f'<text x="{x:g}" y="{y:g}" {attributes}>{saxutils.escape(_printable(content))}</text>')
        self._height = max(self._height, y + size)

    def render(self) -> str:
        """The document."""
        height = self._height + 16
        box = f'width="{self.width}" height="{height:g}" viewBox="0 0 {self.width} {height:g}"'
        ground = f'<rect width="{self.width}" height="{height:g}" fill="#ffffff"/>'
        lines = [f'<svg xmlns="http://www.w3.org/2000/svg" {box} style="{_FONT}">', ground, *self._elements, "</svg>"]
        return "".join(f"{line}\n" for line in lines)


def _printable(content: str) -> str:
    """Without characters that an XML document must not have."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in content)


def shortened(text: str, most: int) -> str:
    """A text that takes no more room than so many letters."""
    return text if len(text) <= most else f"{text[: most - 1]}\N{HORIZONTAL ELLIPSIS}"
