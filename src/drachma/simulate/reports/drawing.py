"""SVG documents: rectangles and lines of text on a page that grows downwards."""

from __future__ import annotations

from typing import Final
from xml.sax import saxutils

_FONT: Final = "font-family:system-ui,sans-serif"


class Drawing:
    """Picture that grows downwards."""

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
        """Draw a rectangle. ``hint`` is its tooltip."""
        stroke = f' stroke="{border}"' if border else ""
        body = f"<title>{saxutils.escape(_printable(hint))}</title>" if hint else ""
        place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
        self._elements.append(f'<rect {place} rx="2" fill="{fill}"{stroke}>{body}</rect>')
        self._height = max(self._height, y + height)

    def text(
        self, x: float, y: float, content: str, *, size: int = 12, fill: str = "#111827", anchor: str = "start"
    ) -> None:
        """Draw a line of text. ``y`` is its baseline."""
        attributes = f'font-size="{size}" fill="{fill}" text-anchor="{anchor}"'
        self._elements.append(f'<text x="{x:g}" y="{y:g}" {attributes}>{saxutils.escape(_printable(content))}</text>')
        self._height = max(self._height, y + size)

    def render(self) -> str:
        """Return the document."""
        height = self._height + 16
        box = f'width="{self.width}" height="{height:g}" viewBox="0 0 {self.width} {height:g}"'
        ground = f'<rect width="{self.width}" height="{height:g}" fill="#ffffff"/>'
        lines = [f'<svg xmlns="http://www.w3.org/2000/svg" {box} style="{_FONT}">', ground, *self._elements, "</svg>"]
        return "".join(f"{line}\n" for line in lines)


def _printable(content: str) -> str:
    """Return the text without characters that XML does not allow."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in content)


def shorten(text: str, most: int) -> str:
    """Return a text cut to the room of a number of letters."""
    return text if len(text) <= most else f"{text[: most - 1]}\N{HORIZONTAL ELLIPSIS}"
