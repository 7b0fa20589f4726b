"""CustomResourceDefinitions: names, versions, schemas, subresources, columns, conversion, with upstream's messages.

Upstream checks its internal form, which has fields that all versions share once, next to the versions: a schema that is
the same in all of them is ``spec.validation`` there, and messages name it so. :class:`Spec` reads a spec in this way.
"""

import base64
import functools
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from drachma import errors
from drachma.claims import conditions
from drachma.validation import constraints, fielderror, rendering, rulenotation, typerules
from drachma.validation.fielderror import Errors, FieldError, Found
from drachma.validation.path import METADATA, SPEC, STATUS, Document, Path
from drachma.validation.structural import correlation, defaultvalues, fieldpaths, schemarules, structure
from drachma.validation.structural import schema as schemas
from drachma.values import names

APPROVAL: Final = "api-approved.kubernetes.io"
"""Annotation that approves groups of the community."""

MAX_SELECTABLE_FIELDS: Final = 8

_SELECTABLE_TYPES: Final = ("string", "boolean", "integer")
_WARNING_BYTES: Final = 256
_COMMON: Final = {
    "schema": "validation",
    "subresources": "subresources",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}
"""Fields of versions, and their names in the spec if all versions share them."""

_ROOT_FIELDS: Final = frozenset(
    {
        "description", "type", "format", "title", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum",
        "maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "multipleOf", "required", "items",
        "properties", "externalDocs", "example", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations",
    }
)  # fmt: skip
_ROOT_NAMES: Final = (
    "[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern "
    "MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields "
    "XValidations]"
)
_STORED: Final = STATUS.child("storedVersions")
_VERSION_FIELDS: Final = (
    ("Name", "name", None),
    ("Served", "served", False),
    ("Storage", "storage", False),
    ("Deprecated", "deprecated", False),
    ("DeprecationWarning", "deprecationWarning", None),
    ("Schema", "schema", None),
    ("Subresources", "subresources", None),
    ("AdditionalPrinterColumns", "additionalPrinterColumns", None),
    ("SelectableFields", "selectableFields", None),
)


class Part(NamedTuple):
    """Value of a field of a version, or of a field that all versions share."""

    at: Path
    value: Any
    version: str = ""
    """Name of the version; empty if all share the value."""
    position: int | None = None
    """Position of the version, which is not its name: a wrong definition has two versions of one name."""


class Spec:
    """A spec with the fields that its versions share set apart."""

    def __init__(self, document: Document) -> None:
        self.document: Final = document
        self.versions: Final[Sequence[Document]] = document.get("versions") or ()
        self._common: Final = {field for field in _COMMON if _is_common(self.versions, field)}

    @property
    def names(self) -> Document:
        return self.document.get("names") or {}

    def parts(self, field: str) -> Sequence[Part]:
        """Return the values of a field, those of versions in their order or the one that all versions share."""
        if not self.versions:
            return ()
        if field in self._common:
            value = self.versions[0].get(field)
            return [Part(SPEC.child(_COMMON[field]), value)] if value else []
        at = SPEC.child("versions")
        each = [Part(at.item(index).child(field), version.get(field), version.get("name", ""), index)
                for index, version in enumerate(self.versions)]  # fmt: skip
        return [part for part in each if part.value]

    def shown(self) -> rendering.Rendered:
        """Return the versions in the form of upstream's internal types."""
        if "versions" not in self.document or self.document["versions"] is None:
            return rendering.NULL
        return rendering.Rendered("[" + ",".join(map(self._show_version, self.versions)) + "]")

    def _show_version(self, version: Document) -> str:
        own = {field: value for field, value in version.items() if field not in self._common and value is not None}
        return rendering.internal_fields(own, *_VERSION_FIELDS)

    def has_status(self, version: str) -> bool:
        """Return True if a version, or any version if none is named, has a status subresource."""
        versions = [each for each in self.versions if each.get("name") == version][:1] if version else self.versions
        return any("status" in (each.get("subresources") or {}) for each in versions)

    @functools.cached_property
    def expressions(self) -> frozenset[str]:
        """Return all CEL expressions of the spec."""
        texts = set()
        for part in self.parts("schema"):
            document = part.value.get("openAPIV3Schema")
            if document is not None:
                for each in schemas.parse(document).everywhere():
                    texts |= {rule.rule for rule in each.rules} | {rule.message_expression for rule in each.rules}
        return frozenset(texts)

    def schema_of(self, version: str) -> Any:
        """Return the schema of a version as a document."""
        return next((each.get("schema") for each in self.versions if each.get("name") == version), None)


def _is_common(versions: Sequence[Document], field: str) -> bool:
    return all(correlation.same(each.get(field), versions[0].get(field)) for each in versions)


def check_name(name: str, spec: Document) -> Errors:
    """Yield an error if the name of a definition is not that of its resource; other rules report an absent name."""
    if name and name != f"{(spec.get('names') or {}).get('plural', '')}.{spec.get('group', '')}":
        yield fielderror.invalid(METADATA.child("name"), name, 'must be spec.names.plural+"."+spec.group')


def check(definition: Document) -> list[FieldError]:
    """Return the errors of a new definition except those of its metadata."""
    spec = Spec(definition["spec"])
    return [
        *_spec(spec, old=None),
        *check_status(definition),
        *_stored_versions(definition),
        *_approval(definition, None),
        *_preserved(spec, None),
    ]


def check_update(definition: Document, old: Document) -> list[FieldError]:
    """Return the errors of a definition that replaces another."""
    spec, before = Spec(definition["spec"]), Spec(old["spec"])
    problems = _spec(spec, old=before)
    if _is_established(old):
        problems += _TYPES["EstablishedUpdate"](spec.document, SPEC, before.document)
        problems += _bundle(spec, before)
    problems += _TYPES["Update"](spec.document, SPEC, before.document)
    return [
        *problems,
        *check_status(definition),
        *_stored_versions(definition),
        *_approval(definition, old),
        *_preserved(spec, before),
    ]


def check_status(definition: Document) -> list[FieldError]:
    """Return the errors of the status of a definition."""
    return _TYPES["CustomResourceDefinitionStatus"](definition.get("status") or {}, STATUS)


def _is_established(definition: Document) -> bool:
    existing = (definition.get("status") or {}).get("conditions") or ()
    return conditions.has_true_document(existing, "Established")


# The spec


def _spec(spec: Spec, *, old: Spec | None) -> list[FieldError]:
    document = spec.document
    problems = _TYPES["CustomResourceDefinitionSpec"](document, SPEC)
    if document.get("preserveUnknownFields") and _has_defaults(spec):
        detail = "must be false in order to use defaults in the schema"
        problems.append(fielderror.invalid(SPEC.child("preserveUnknownFields"), value=True, detail=detail))
    problems += _versions(spec, old=old)
    titles = [version.get("name", "") for version in spec.versions]
    if len(set(titles)) < len(titles):
        problems.append(fielderror.invalid(SPEC.child("versions"), spec.shown(), "must contain unique version names"))
    if sum(bool(version.get("storage")) for version in spec.versions) != 1:
        detail = "must have exactly one version marked as storage version"
        problems.append(fielderror.invalid(SPEC.child("versions"), spec.shown(), detail))
    if titles and titles[0]:
        problems += constraints.resource_label(titles[0], SPEC.child("version"))
    for type_name in ("RequiredNames", "CustomResourceDefinitionNames"):
        problems += _TYPES[type_name](spec.names, SPEC.child("names"))
    problems += _parts(spec, old=old, position=None)
    if (document.get("conversion") or {}).get("strategy", "None") != "None" and document.get("preserveUnknownFields"):
        place = SPEC.child("conversion").child("strategy")
        display = rendering.named(document["conversion"]["strategy"])
        problems.append(fielderror.invalid(place, display, "must be None if spec.preserveUnknownFields is true"))
    if document.get("conversion") is not None:
        problems += _TYPES["CustomResourceConversion"](document["conversion"], SPEC.child("conversion"))
    return problems


def _group(group: str, at: Path) -> Found:
    problems = constraints.text_with_one_error(names.dns1123_subdomain)(group, at)
    if problems or "." in group:
        return problems
    return [fielderror.invalid(at, group, "should be a domain with at least one dot")]


# Versions


def _versions(spec: Spec, *, old: Spec | None) -> list[FieldError]:
    problems: list[FieldError] = []
    for index, version in enumerate(spec.versions):
        here = SPEC.child("versions").item(index)
        problems += constraints.resource_label(version.get("name", ""), here.child("name"))
        warning = version.get("deprecationWarning")
        for problem in _warning(warning, is_deprecated=bool(version.get("deprecated"))):
            problems.append(fielderror.invalid(here.child("deprecationWarning"), warning, problem))
        problems += _parts(spec, old=old, position=index)
    return problems


def _warning(text: str | None, *, is_deprecated: bool) -> list[str]:
    if text is None:
        return []
    if not is_deprecated:
        return ["can only be set for deprecated versions"]
    problems = []
    if names.byte_length(text) > _WARNING_BYTES:
        problems.append(f"must be <= {_WARNING_BYTES} characters long")
    if not text:
        problems.append("must not be an empty string")
    index = next((index for index, character in enumerate(text) if not character.isprintable()), None)
    if index is not None:
        place = len(text[:index].encode())
        problems.append(f"must only contain printable UTF-8 characters; non-printable character found at index {place}")
    return problems


def _parts(spec: Spec, *, old: Spec | None, position: int | None) -> list[FieldError]:
    """Return the errors of the fields of the version at a position, or of the fields that all versions share."""

    def parts(field: str) -> Sequence[Part]:
        return [part for part in spec.parts(field) if part.position == position]

    problems: list[FieldError] = []
    for part in parts("schema"):
        problems += _validation(spec, part.value, part.version, part.at, old=old)
    for part in parts("subresources"):
        problems += _TYPES["CustomResourceSubresources"](part.value, part.at)
    for part in parts("additionalPrinterColumns"):
        problems += _COLUMNS(part.value, part.at)
    for part in parts("selectableFields"):
        problems += _selectable(spec, part)
    return problems


def _has_defaults(spec: Spec) -> bool:
    documents = [part.value.get("openAPIV3Schema") for part in spec.parts("schema")]
    return any(
        each.default is not msgspec.UNSET for one in documents if one for each in schemas.parse(one).everywhere()
    )


def _validation(spec: Spec, validation: Document, version: str, at: Path, *, old: Spec | None) -> list[FieldError]:
    """Return the errors of the schema of a version, or of all of them."""
    document = validation.get("openAPIV3Schema")
    if document is None:
        return []
    here = at.child("openAPIV3Schema")
    try:
        schema = schemas.parse(document)
    except errors.InvalidValueError as error:
        return [fielderror.invalid(here, "", str(error))]
    field_errors: list[FieldError] = []
    if spec.has_status(version):
        field_errors += _status_schema(document, here)
    if schema.nullable:
        field_errors.append(fielderror.forbidden(here.child("nullable"), "nullable cannot be true at the root"))
    costs: schemarules.Costs | None = None
    problems = [] if _unsupported(schema) else structure.check(schema, here) or defaultvalues.check(schema, here)
    if not problems and not _unsupported(schema):
        costs = schemarules.Costs()
    field_errors += problems
    circumstances = schemarules.Circumstances(
        stored=old.expressions if old is not None else frozenset(),
        spares_costs=old is not None and _is_unchanged(spec, old, version),
        costs=costs,
        is_root=True,
    )
    field_errors += schemarules.check(schema, here, circumstances)
    return [*field_errors, *(costs.check(here) if costs is not None else ())]


def _unsupported(schema: schemas.Schema) -> bool:
    """Return True if a schema has fields that no structural schema has; their errors are reported elsewhere."""
    return any(
        each.id or each.meta_schema or each.ref or each.pattern_properties or each.dependencies or each.definitions
        or each.additional_items is not None or isinstance(each.items, list) or each.preserves_unknown_fields is False
        for each in schema.everywhere()
    )  # fmt: skip


def _is_unchanged(spec: Spec, old: Spec, version: str) -> bool:
    version_name = version or (spec.versions[0].get("name", "") if spec.versions else "")
    return correlation.same(spec.schema_of(version_name), old.schema_of(version_name))


def _status_schema(document: Document, at: Path) -> list[FieldError]:
    """Return the errors of a root schema with a status subresource, which may have only some fields."""
    if document.get("type", "object") != "object":
        detail = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        return [fielderror.invalid(at.child("type"), document["type"], detail)]
    if set(document) <= _ROOT_FIELDS:
        return []
    detail = f"only {_ROOT_NAMES} fields are allowed at the root of the schema if the status subresource is enabled"
    return [fielderror.invalid(at, rendering.wire(document), detail)]


def _selectable(spec: Spec, part: Part) -> list[FieldError]:
    """Return the errors of selectable fields, which need a schema that exactly their versions share."""
    at = part.at
    document = next(
        (each.value.get("openAPIV3Schema") for each in spec.parts("schema") if each.position == part.position), None
    )
    if document is None:
        is_shared = part.position is None
        detail = "validations.schema is included" if is_shared else "`version.schema.openAPIV3Schema` is not included"
        return [fielderror.invalid(at, "", f"may only be set when {detail}")]
    schema = schemas.parse(document)
    problems: list[FieldError] = []
    previous: set[str] = set()
    for index, each in enumerate(part.value):
        place, path = at.item(index).child("jsonPath"), each.get("jsonPath", "")
        if not path:
            problems.append(fielderror.required(place))
            continue
        leads = fieldpaths.find(path, schema, allows_brackets=False)
        if isinstance(leads, str):
            problems.append(fielderror.invalid(place, path, f"is an invalid path: {leads}"))
            continue
        if leads.root == "metadata":
            problems.append(fielderror.invalid(place, path, "must not point to fields in metadata"))
        if leads.schema is None or leads.schema.type not in _SELECTABLE_TYPES:
            detail = (
                "must point to a field of type string, boolean or integer. "
                "Enum string fields and strings with formats are allowed."
            )
            problems.append(fielderror.invalid(place, path, detail))
        if str(leads.path) in previous:
            problems.append(fielderror.duplicate(place, path))
        previous.add(str(leads.path))
    if len(previous) > MAX_SELECTABLE_FIELDS:
        problems.append(fielderror.too_many(at, len(previous), MAX_SELECTABLE_FIELDS))
    return problems


# Conversion


def _bundle(spec: Spec, old: Spec) -> list[FieldError]:
    """Return the errors of the certificates of a webhook; malformed stored ones may stay."""
    bundle, before = _certificates(spec), _certificates(old)
    if not bundle or _is_pem(bundle) or (before and not _is_pem(before)):
        return []
    place = SPEC.child("conversion").child("webhookClientConfig").child("caBundle")
    detail = "unable to load root certificates: unable to parse bytes as PEM block"
    return [fielderror.invalid(place, bundle, detail)]


def _certificates(spec: Spec) -> str:
    webhook = (spec.document.get("conversion") or {}).get("webhook") or {}
    return str((webhook.get("clientConfig") or {}).get("caBundle") or "")


def _is_pem(bundle: str) -> bool:
    return b"-----BEGIN CERTIFICATE-----" in base64.b64decode(bundle)


# Status, approval


def _stored_versions(definition: Document) -> Errors:
    stored_versions = (definition.get("status") or {}).get("storedVersions")
    if not stored_versions:
        display = rendering.NULL if stored_versions is None else stored_versions
        yield fielderror.invalid(_STORED, display, "must have at least one stored version")
        return
    unused = {version: index for index, version in enumerate(stored_versions)}
    for version in definition["spec"].get("versions") or ():
        name = version.get("name", "")
        if version.get("storage") and name not in unused:
            yield fielderror.invalid(_STORED, list(stored_versions), f"must have the storage version {name}")
        unused.pop(name, None)
    for version, index in unused.items():
        detail = (
            f"missing from spec.versions; {version} was previously a storage version, and must remain in "
            f"spec.versions until a storage migration ensures no data remains persisted in {version} and removes "
            f"{version} from status.storedVersions"
        )
        yield fielderror.invalid(_STORED.item(index), version, detail)


def is_protected(group: str) -> bool:
    """Return True for groups of the Kubernetes community, which approves their APIs."""
    return any(group == name or group.endswith(f".{name}") for name in ("k8s.io", "kubernetes.io"))


def approval(annotation: str) -> tuple[str, str]:
    """Return the approval of an API by its annotation, as a reason and upstream's message."""
    if not annotation:
        detail = f'protected groups must have approval annotation "{APPROVAL}"'
        return "Missing", f"{detail}, see https://github.com/kubernetes/enhancements/pull/1111"
    if annotation.startswith("unapproved"):
        return "Bypassed", f'not approved: "{annotation}"'
    scheme, separator, location = annotation.partition("://")
    if separator and scheme.isalpha() and location.partition("/")[0]:
        return "Approved", f"approved in {annotation}"
    detail = (
        f'protected groups must have approval annotation "{APPROVAL}" with either a URL or a reason starting with '
        '"unapproved", see https://github.com/kubernetes/enhancements/pull/1111'
    )
    return "Invalid", detail


def _approval(definition: Document, old: Document | None) -> Errors:
    if not is_protected(definition["spec"].get("group", "")):
        return
    annotation = _annotation(definition)
    state, detail = approval(annotation)
    if old is not None and approval(_annotation(old))[0] == state:
        return
    at = METADATA.child("annotations").key(APPROVAL)
    if state == "Missing":
        yield fielderror.required(at, detail)
    elif state == "Invalid":
        yield fielderror.invalid(at, annotation, detail)


def _annotation(definition: Document) -> str:
    return str(((definition.get("metadata") or {}).get("annotations") or {}).get(APPROVAL, ""))


def _preserved(spec: Spec, old: Spec | None) -> Errors:
    if spec.document.get("preserveUnknownFields") and not (old and old.document.get("preserveUnknownFields")):
        detail = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        )
        yield fielderror.invalid(SPEC.child("preserveUnknownFields"), value=True, detail=detail)


# Paths of fields


def _json_path(*roots: str) -> constraints.Constraint:
    """Return the constraint of simple JSON paths that lead below one of the roots, or anywhere without roots."""
    under = f"either {' or '.join(roots)}" if len(roots) > 1 else "".join(roots)

    def constraint(path: str, at: Path) -> Found:
        if not path.startswith("."):
            return [fielderror.invalid(at, path, "must be a simple json path starting with .")]
        if roots and not path.startswith(tuple(f"{root}." for root in roots)):
            return [fielderror.invalid(at, path, f"should be a json path under {under}")]
        return ()

    return constraint


_any_path: Final = _json_path()
_spec_path: Final = _json_path(".spec")
_status_path: Final = _json_path(".status")
_selector_path: Final = _json_path(".spec", ".status")
_TYPES: Final = rulenotation.load("customresourcedefinition", globals())
_COLUMNS: Final = typerules.Each(_TYPES["CustomResourceColumnDefinition"])
