"""``drachma validate``: manifests against the API server's rules, without a server."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from drachma import errors, validation
from drachma.api import codec, defaults, gates, scheme
from drachma.offline import manifestfiles
from drachma.validation import refusal

_Labels = Mapping[str, Mapping[str, str]]


def validate(
    file: Annotated[list[str], typer.Option("-f", "--filename", help="A file, a folder, or - for standard input.")],
    feature_gates: Annotated[
        str, typer.Option(help="Features to switch, such as DRAConsumableCapacity=false,DRAAdminAccess=false.")
    ] = "",
) -> None:
    """Check manifests as a server would when they are created, and show its messages.

    Objects without a namespace go to "default". Admin access is only judged where the manifests hold the Namespace.
    """
    switched = gates.Gates.parse(feature_gates)
    found = list(manifestfiles.read(file))
    labels = _namespace_labels(source.content for source in found if isinstance(source, manifestfiles.Source))
    is_good = True
    for source in found:
        problem: object = source
        if isinstance(source, manifestfiles.Source):
            try:
                problem = _judge(source, labels, switched)
            except errors.DrachmaError as error:
                problem = f"{source.place}: {error}"
        if problem is not None:
            typer.echo(f"drachma: {problem}", err=True)
            is_good = False
    if not is_good:
        raise typer.Exit(1)


def _judge(source: manifestfiles.Source, labels: _Labels, switched: gates.Gates) -> str | None:
    """Show that an object is good, or return what a server would say to it; a DecodeError if it is no object."""
    api_version, kind = codec.type_of(source.content)
    unknown = codec.unknown_fields(source.content)
    if unknown:
        fields = ", ".join(f'unknown field "{path}"' for path in unknown)
        return f"{source.place}: {codec.title(source.content)}: strict decoding error: {fields}"
    now = datetime.now(UTC)
    given = defaults.apply(codec.decode(_placed(source.content, kind)), now=now)
    context = validation.Context(
        now=now, gates=switched, api_version=api_version, namespace_labels=labels.get(given.metadata.namespace)
    )
    verdict = validation.create(given, context)
    name = given.metadata.name
    if verdict.errors:
        said = refusal.message(verdict.errors, group=kind.group, kind=kind.name, name=name)
        return f"{source.place}: {said}"
    for warning in verdict.warnings:
        typer.echo(f"drachma: {source.place}: warning: {warning}", err=True)
    typer.echo(f"{refusal.qualified(kind.name.lower(), kind.group)}/{name} is valid")
    return None


def _placed(document: dict[str, Any], kind: scheme.Kind) -> dict[str, Any]:
    """The document as a server reads it: in the default namespace, under a name made from its generateName."""
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        return document
    added = {}
    if kind.namespaced and not metadata.get("namespace"):
        added["namespace"] = "default"
    if metadata.get("generateName") and not metadata.get("name"):
        added["name"] = f"{metadata['generateName']}xxxxx"
    return {**document, "metadata": {**metadata, **added}}


def _namespace_labels(documents: Any) -> _Labels:
    found: dict[str, Mapping[str, str]] = {}
    for document in documents:
        if not isinstance(document, dict) or (document.get("apiVersion"), document.get("kind")) != ("v1", "Namespace"):
            continue
        metadata = document.get("metadata")
        if isinstance(metadata, dict) and isinstance(metadata.get("name"), str):
            labels = metadata.get("labels")
            found[metadata["name"]] = labels if isinstance(labels, dict) else {}
    return found
