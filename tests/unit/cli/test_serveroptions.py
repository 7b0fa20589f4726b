"""Groups of options: a command takes a struct, and users see its fields."""

from typing import Annotated

import msgspec
import typer
from typer.testing import CliRunner

from drachma.cli import serveroptions


class Size(msgspec.Struct, frozen=True, kw_only=True):
    width: Annotated[int, typer.Option(min=1, help="Columns.")] = 3
    height: int = 2


def test_fields_are_options() -> None:
    seen: list[tuple[Size, str]] = []

    @serveroptions.expand
    def draw(size: Size, colour: Annotated[str, typer.Option(help="Of the lines.")] = "red") -> None:
        """Draw a box."""
        seen.append((size, colour))

    app = typer.Typer()
    app.command()(draw)
    assert CliRunner().invoke(app, ["--height", "5", "--colour", "blue"]).exit_code == 0
    assert CliRunner().invoke(app, []).exit_code == 0
    assert CliRunner().invoke(app, ["--width", "0"]).exit_code == 2
    assert seen == [(Size(height=5), "blue"), (Size(), "red")]
    shown = CliRunner().invoke(app, ["--help"]).output
    assert "Draw a box." in shown
    assert "Columns." in shown
