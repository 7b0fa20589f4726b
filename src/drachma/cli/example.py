"""``drachma example``: manifests to start with, which fit the nodes of ``drachma up``."""

from typing import Annotated

import typer

from drachma import errors


def example(
    name: Annotated[str, typer.Argument(help="Name of the example; all are listed without.")] = "",
) -> None:
    """Print manifests to try on drachma up, or list them.

    For example: drachma example first-steps | kubectl apply -f -
    """
    import importlib.resources

    from drachma.cli import nearest

    folder = importlib.resources.files("drachma.cli").joinpath("examplefiles")
    files = {each.name.removesuffix(".yaml"): each for each in folder.iterdir() if each.name.endswith(".yaml")}
    if not name:
        width = max(map(len, files))
        for each in sorted(files):
            title = files[each].read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
            typer.echo(f"{each.ljust(width)}   {title}")
        return
    if name not in files:
        raise errors.InvalidValueError(f"example {name!r}: does not exist{nearest.suggest(name, files)}")
    typer.echo(files[name].read_text(encoding="utf-8"), nl=False)
