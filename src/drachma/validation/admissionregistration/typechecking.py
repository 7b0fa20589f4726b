"""Type checking of policies: whether expressions fit the types of the objects that they look at.

A policy is compiled for objects of any type, so that one can be written before its kinds exist. What the types of those
kinds have to say about its expressions is a warning in its status. Types are read from OpenAPI documents, as any server
publishes them.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from drachma import cel
from drachma.cel import admission, types
from drachma.validation.path import SPEC, Document
from drachma.validation.structural import declaredtypes

MOST: Final = 10
"""Limit of the number of kinds that a policy is checked against."""

_PREFIX: Final = "compilation failed: "
_FORMATS: Final = {
    "byte": types.BYTES,
    "date": types.TIMESTAMP,
    "date-time": types.TIMESTAMP,
    "duration": types.DURATION,
}


class KindName(NamedTuple):
    """A kind in a version."""

    group: str
    version: str
    kind: str

    def __str__(self) -> str:
        return f"{self.group}/{self.version}, Kind={self.kind}"


class CheckedType(NamedTuple):
    """The type of a kind's objects, and the object types that it refers to."""

    type: types.Type
    objects: Mapping[str, Mapping[str, types.Type]]


def declared(document: Document, name: KindName) -> CheckedType | None:
    """The type that an OpenAPI document has for a kind; None where it has none."""
    schemas: Mapping[str, Document] = (document.get("components") or {}).get("schemas") or {}
    kind_name = {"group": name.group, "version": name.version, "kind": name.kind}
    for title, schema in schemas.items():
        if kind_name in (schema.get("x-kubernetes-group-version-kind") or ()):
            reader = _Reader(schemas)
            return CheckedType(reader.referred(title), reader.objects)
    return None


class _Reader:
    """Makes types of schemas; one that refers to itself is of any type there."""

    def __init__(self, schemas: Mapping[str, Document]) -> None:
        self._schemas = schemas
        self._open: set[str] = set()
        self.objects: dict[str, Mapping[str, types.Type]] = {}

    def referred(self, title: str) -> types.Type:
        if title in self._open or title not in self._schemas:
            return types.DYN
        self._open.add(title)
        type_ = self._read(self._schemas[title], title)
        self._open.remove(title)
        return type_

    def _read(self, schema: Document, title: str) -> types.Type:
        for each in (schema, *(schema.get("allOf") or ())):
            if "$ref" in each:
                return self.referred(each["$ref"].rpartition("/")[2])
        if schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int-or-string":
            return types.DYN
        match schema.get("type"):
            case "boolean":
                return types.BOOL
            case "integer":
                return types.INT
            case "number":
                return types.DOUBLE
            case "string":
                return _FORMATS.get(schema.get("format", ""), types.STRING)
            case "array":
                return types.list_of(self._read(schema.get("items") or {}, f"{title}.items"))
            case "object":
                return self._object(schema, title)
        return types.DYN

    def _object(self, schema: Document, title: str) -> types.Type:
        properties: Mapping[str, Document] = schema.get("properties") or {}
        if not properties:
            values = schema.get("additionalProperties")
            if isinstance(values, dict):
                return types.map_of(types.STRING, self._read(values, f"{title}.values"))
            return types.DYN
        fields: dict[str, types.Type] = {}
        self.objects[title] = fields
        for name, part in properties.items():
            escaped = declaredtypes.escape_name(name)
            if escaped is not None:
                fields[escaped] = self._read(part, f"{title}.{name}")
        return types.object_type(title)


def resources(spec: Document) -> list[tuple[str, str, str]]:
    """Groups, versions and resources that a policy names one by one; what it says by wildcards is not checked."""
    places: dict[tuple[str, str, str], None] = {}
    for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
        groups, versions = rule.get("apiGroups") or (), rule.get("apiVersions") or ()
        if any("*" in text for text in (*groups, *versions)):
            continue
        names = sorted(each for each in rule.get("resources") or () if "*" not in each and "/" not in each)
        for group, version in itertools.product(sorted(groups), sorted(versions)):
            places.update(dict.fromkeys((group, version, name) for name in names))
    return list(places)


def warnings(
    spec: Document, checked: Sequence[tuple[KindName, CheckedType]], params: CheckedType | None
) -> list[dict[str, str]]:
    """Return the type errors of expressions for each of the kinds, in the form of a status."""
    errors = []
    for position, validation in enumerate(spec.get("validations") or ()):
        for field in ("expression", "messageExpression"):
            text = validation.get(field)
            problems = [_problem(spec, text, name, type_, params) for name, type_ in checked] if text else []
            display = "\n".join(problem for problem in problems if problem)
            if display:
                at = SPEC.child("validations").item(position).child(field)
                errors.append({"fieldRef": str(at), "warning": display})
    return errors


def _problem(spec: Document, text: str, name: KindName, type_: CheckedType, params: CheckedType | None) -> str:
    subjects = admission.Subjects(
        object=type_.type,
        params=types.DYN if params is None else params.type,
        objects={**({} if params is None else params.objects), **type_.objects},
    )
    compiler = admission.Compiler(has_params=spec.get("paramKind") is not None, composes=True, subjects=subjects)
    for variable in spec.get("variables") or ():
        compiler.declare(variable["name"], variable["expression"])
    try:
        compiler.compile(text)
    except cel.CompilationError as error:
        return f"{name}: {str(error).removeprefix(_PREFIX)}\n"
    return ""
