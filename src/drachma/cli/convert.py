"""``drachma convert``: manifests from one version of ``resource.k8s.io`` to another."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drachma import errors
from drachma.cli import options

if TYPE_CHECKING:
    from drachma.offline.manifestfiles import Source


class FieldValidation(enum.StrEnum):
    """Treatment of fields that a kind does not have; conversion loses them."""

    STRICT = "strict"
    WARN = "warn"
    IGNORE = "ignore"


def convert(
    file: options.Filename,
    to: Annotated[str, typer.Option(help="Version to write, such as resource.k8s.io/v1beta1.")],
    output: options.DocumentFormat = options.Format.YAML,
    validate: Annotated[
        FieldValidation, typer.Option(help="Refuse unknown fields, warn about them, or ignore them.")
    ] = FieldValidation.STRICT,
) -> None:
    """Convert manifests to another version of resource.k8s.io.

    Objects of other groups are written unchanged. Nothing is written unless every document can be converted.
    """
    from drachma.api import manifest
    from drachma.offline import manifestfiles

    _require_served(to)
    converted: list[Any] = []
    is_good = True
    for source in manifestfiles.read(file):
        if isinstance(source, manifestfiles.Unreadable):
            typer.echo(f"drachma: {source}", err=True)
            is_good = False
            continue
        try:
            converted.append(_convert(source, to, validate))
        except errors.DrachmaError as error:
            typer.echo(f"drachma: {source.place}: {error}", err=True)
            is_good = False
    if not is_good:
        raise typer.Exit(1)
    write = manifest.write_yaml if output is options.Format.YAML else manifest.write_json
    typer.echo(write(converted), nl=False)


def _require_served(api_version: str) -> None:
    from drachma.api import scheme

    served = sorted(
        {version for kind in scheme.KINDS if kind.group == scheme.RESOURCE_GROUP for version in kind.api_versions}
    )
    if api_version not in served:
        raise errors.DecodeError(f"--to {api_version}: unknown version, expected one of {', '.join(served)}")


def _convert(source: Source, to: str, validate: FieldValidation) -> Any:
    from drachma.api import codec, scheme

    api_version, _ = codec.type_meta(source.content)
    if api_version.partition("/")[0] != scheme.RESOURCE_GROUP:
        return source.content
    decoded = codec.decode(source.content)
    unknown = () if validate is FieldValidation.IGNORE else codec.unknown_fields(source.content)
    if unknown:
        message = f"{codec.title(source.content)}: " + "; ".join(f"{path}: unknown field" for path in unknown)
        if validate is FieldValidation.STRICT:
            raise errors.DecodeError(message)
        typer.echo(f"drachma: {source.place}: warning: {message}", err=True)
    return codec.encode(decoded, api_version=to)
