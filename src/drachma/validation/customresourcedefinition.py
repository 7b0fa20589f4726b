"""CustomResourceDefinitions: names, versions, schemas, subresources, columns, conversion, with upstream's messages.

Upstream looks at its internal form, in which what all versions have in common stands once, beside the versions: a
schema that is the same in all of them is ``spec.validation``, and that is how its messages name it. :class:`Spec` reads
a spec in this way.
"""

import base64
import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.validation import fielderror, metadata, rendering
from drachma.validation.admissionregistration import webhooks
from drachma.validation.fielderror import Errors, FieldError
from drachma.validation.path import METADATA, SPEC, STATUS, Path
from drachma.validation.structural import correlation, defaultvalues, fieldpaths, schemarules, structure
from drachma.validation.structural import schema as schemas
from drachma.values import names

Document = Mapping[str, Any]

APPROVAL: Final = "api-approved.kubernetes.io"
"""The annotation by which groups of the community are approved."""

MAX_SELECTABLE_FIELDS: Final = 8

_SCOPES: Final = ("Cluster", "Namespaced")
_STRATEGIES: Final = ("None", "Webhook")
_REVIEW_VERSIONS: Final = ("v1", "v1beta1")
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_SELECTABLE_TYPES: Final = ("string", "boolean", "integer")
_WARNING_BYTES: Final = 256
_COMMON: Final = {
    "schema": "validation",
    "subresources": "subresources",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}
"""What versions have, and what it is called where they have it in common."""

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
    ("Name", "name"),
    ("Served", "served"),
    ("Storage", "storage"),
    ("Deprecated", "deprecated"),
    ("DeprecationWarning", "deprecationWarning"),
    ("Schema", "schema"),
    ("Subresources", "subresources"),
    ("AdditionalPrinterColumns", "additionalPrinterColumns"),
    ("SelectableFields", "selectableFields"),
)


class Spec:
    """A spec with what its versions have in common set apart."""

    def __init__(self, document: Document) -> None:
        self.document: Final = document
        self.versions: Final[Sequence[Document]] = document.get("versions") or ()
        self._common: Final = {field for field in _COMMON if _is_common(self.versions, field)}

    @property
    def names(self) -> Document:
        return self.document.get("names") or {}

    def parts(self, field: str) -> Sequence[tuple[Path, Any, str]]:
        """What versions have in a field: where it stands, itself, and of which version it is; empty for all."""
        if not self.versions:
            return ()
        if field in self._common:
            value = self.versions[0].get(field)
            return [(SPEC.child(_COMMON[field]), value, "")] if value else []
        at = SPEC.child("versions")
        each = [(at.item(index).child(field), version.get(field), version.get("name", ""))
                for index, version in enumerate(self.versions)]  # fmt: skip
        return [part for part in each if part[1]]

    def shown(self) -> rendering.Rendered:
        """The versions as upstream's internal types."""
        if "versions" not in self.document or self.document["versions"] is None:
            return rendering.NULL
        return rendering.Rendered("[" + ",".join(map(self._shown_version, self.versions)) + "]")

    def _shown_version(self, version: Document) -> str:
        shown = []
        for title, field in _VERSION_FIELDS:
            value = None if field in self._common else version.get(field)
            if value is None and field in ("served", "storage", "deprecated"):
                value = False
            shown.append(f'"{title}":{rendering.wire(value)}')
        return "{" + ",".join(shown) + "}"

    def has_status(self, version: str) -> bool:
        """Whether the status is written apart, in a version or, without one, in any."""
        chosen = [each for each in self.versions if not version or each.get("name") == version]
        return any("status" in (each.get("subresources") or {}) for each in chosen)

    @functools.cached_property
    def expressions(self) -> frozenset[str]:
        """All CEL expressions in it."""
        written = set()
        for _, validation, _ in self.parts("schema"):
            document = validation.get("openAPIV3Schema")
            if document is not None:
                for each in schemas.parse(document).everywhere():
                    written |= {rule.rule for rule in each.rules} | {rule.message_expression for rule in each.rules}
        return frozenset(written)

    def schema_of(self, version: str) -> Any:
        """The schema of a version as it is written."""
        return next((each.get("schema") for each in self.versions if each.get("name") == version), None)


def _is_common(versions: Sequence[Document], field: str) -> bool:
    return all(correlation.same(each.get(field), versions[0].get(field)) for each in versions)


def check_name(name: str, spec: Document) -> Errors:
    """The name of a definition is that of its resource."""
    if name != f"{(spec.get('names') or {}).get('plural', '')}.{spec.get('group', '')}":
        yield fielderror.invalid(METADATA.child("name"), name, 'must be spec.names.plural+"."+spec.group')


def check(definition: Document) -> list[FieldError]:
    """What is wrong with a new definition, apart from its metadata."""
    spec = Spec(definition["spec"])
    return [
        *_spec(spec, old=None),
        *_status(definition.get("status") or {}),
        *_stored_versions(definition),
        *_approval(definition, None),
        *_preserved(spec, None),
    ]


def check_update(definition: Document, old: Document) -> list[FieldError]:
    """What is wrong with a definition that takes the place of another."""
    spec, before = Spec(definition["spec"]), Spec(old["spec"])
    found = _spec(spec, old=before)
    if _is_established(old):
        found += _immutable(spec.document.get("scope"), before.document.get("scope"), SPEC.child("scope"))
        found += _immutable(spec.names.get("kind"), before.names.get("kind"), SPEC.child("names", "kind"))
        found += _bundle(spec, before)
    found += _immutable(spec.document.get("group"), before.document.get("group"), SPEC.child("group"))
    found += _immutable(spec.names.get("plural"), before.names.get("plural"), SPEC.child("names", "plural"))
    return [
        *found,
        *_status(definition.get("status") or {}),
        *_stored_versions(definition),
        *_approval(definition, old),
        *_preserved(spec, before),
    ]


def check_status(definition: Document) -> list[FieldError]:
    """What is wrong with the status of a definition."""
    return list(_status(definition.get("status") or {}))


def _is_established(definition: Document) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _immutable(value: Any, old: Any, at: Path) -> list[FieldError]:
    return [] if value == old else [fielderror.invalid(at, value or "", metadata.IMMUTABLE)]


# The spec


def _spec(spec: Spec, *, old: Spec | None) -> list[FieldError]:
    document = spec.document
    found = [*_group(document.get("group", "")), *_choice(document.get("scope", ""), _SCOPES, SPEC.child("scope"))]
    for index, version in enumerate(spec.versions):
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            place = SPEC.child("versions").item(index).child("schema").child("openAPIV3Schema")
            found.append(fielderror.required(place))
    if document.get("preserveUnknownFields") and _has_defaults(spec):
        detail = "must be false in order to use defaults in the schema"
        found.append(fielderror.invalid(SPEC.child("preserveUnknownFields"), value=True, detail=detail))
    found += _versions(spec, old=old)
    titles = [version.get("name", "") for version in spec.versions]
    if len(set(titles)) < len(titles):
        found.append(fielderror.invalid(SPEC.child("versions"), spec.shown(), "must contain unique version names"))
    if sum(bool(version.get("storage")) for version in spec.versions) != 1:
        detail = "must have exactly one version marked as storage version"
        found.append(fielderror.invalid(SPEC.child("versions"), spec.shown(), detail))
    if titles:
        found += _label(titles[0], SPEC.child("version"))
    for field in ("plural", "singular", "kind", "listKind"):
        if not spec.names.get(field):
            found.append(fielderror.required(SPEC.child("names", field)))
    found += _names(spec.names, SPEC.child("names"))
    found += _parts(spec, old=old, is_common=True)
    if (document.get("conversion") or {}).get("strategy", "None") != "None" and document.get("preserveUnknownFields"):
        place = SPEC.child("conversion").child("strategy")
        shown = rendering.named(document["conversion"]["strategy"])
        found.append(fielderror.invalid(place, shown, "must be None if spec.preserveUnknownFields is true"))
    return [*found, *_conversion(document.get("conversion"), SPEC.child("conversion"))]


def _group(group: str) -> Errors:
    at = SPEC.child("group")
    problems = names.dns1123_subdomain(group)
    if not group:
        yield fielderror.required(at)
    elif problems:
        yield fielderror.invalid(at, group, ",".join(problems))
    elif "." not in group:
        yield fielderror.invalid(at, group, "should be a domain with at least one dot")


def _choice(value: str, choices: Sequence[str], at: Path) -> Errors:
    if not value:
        yield fielderror.required(at)
    elif value not in choices:
        yield fielderror.not_supported(at, value, choices)


def _label(text: str, at: Path, *, prefix: str = "") -> Errors:
    problems = names.dns1035_label(text)
    if problems:
        yield fielderror.invalid(at, text, prefix + ",".join(problems))


def _names(written: Document, at: Path) -> Errors:
    for field in ("plural", "singular"):
        if written.get(field):
            yield from _label(written[field], at.child(field))
    for field in ("kind", "listKind"):
        value = written.get(field)
        problems = names.dns1035_label(value.lower()) if value else ()
        if problems:
            detail = f"may have mixed case, but should otherwise match: {','.join(problems)}"
            yield fielderror.invalid(at.child(field), value, detail)
    for index, name in enumerate(written.get("shortNames") or ()):
        yield from _label(name, at.child("shortNames").item(index))
    if written.get("kind") and written["kind"] == written.get("listKind"):
        yield fielderror.invalid(at.child("listKind"), written["listKind"], "kind and listKind may not be the same")
    for index, name in enumerate(written.get("categories") or ()):
        yield from _label(name, at.child("categories").item(index))


# Versions


def _versions(spec: Spec, *, old: Spec | None) -> list[FieldError]:
    found: list[FieldError] = []
    for index, version in enumerate(spec.versions):
        here = SPEC.child("versions").item(index)
        found += _label(version.get("name", ""), here.child("name"))
        warning = version.get("deprecationWarning")
        for problem in _warning(warning, is_deprecated=bool(version.get("deprecated"))):
            found.append(fielderror.invalid(here.child("deprecationWarning"), warning, problem))
        found += _parts(spec, old=old, is_common=False, only=version.get("name", ""))
    return found


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


def _parts(spec: Spec, *, old: Spec | None, is_common: bool, only: str = "") -> list[FieldError]:
    """What stands in versions, or what they have in common."""

    def chosen(field: str) -> Sequence[tuple[Path, Any, str]]:
        return [part for part in spec.parts(field) if (not part[2]) is is_common and part[2] == only]

    found: list[FieldError] = []
    for at, validation, version in chosen("schema"):
        found += _validation(spec, validation, version, at, old=old)
    for at, subresources, _ in chosen("subresources"):
        found += _subresources(subresources, at)
    for at, columns, _ in chosen("additionalPrinterColumns"):
        for index, column in enumerate(columns):
            found += _column(column, at.item(index))
    for at, selectable, version in chosen("selectableFields"):
        found += _selectable(spec, selectable, version, at)
    return found


def _has_defaults(spec: Spec) -> bool:
    written = [validation.get("openAPIV3Schema") for _, validation, _ in spec.parts("schema")]
    return any(each.default is not msgspec.UNSET for one in written if one for each in schemas.parse(one).everywhere())


def _validation(spec: Spec, validation: Document, version: str, at: Path, *, old: Spec | None) -> list[FieldError]:
    """The schema of a version, or of all of them."""
    written = validation.get("openAPIV3Schema")
    if written is None:
        return []
    here = at.child("openAPIV3Schema")
    try:
        schema = schemas.parse(written)
    except errors.InvalidValueError as error:
        return [fielderror.invalid(here, "", str(error))]
    found: list[FieldError] = []
    if spec.has_status(version):
        found += _status_schema(written, here)
    if schema.nullable:
        found.append(fielderror.forbidden(here.child("nullable"), "nullable cannot be true at the root"))
    costs: schemarules.Costs | None = None
    problems = [] if _unsupported(schema) else structure.check(schema, here) or defaultvalues.check(schema, here)
    if not problems and not _unsupported(schema):
        costs = schemarules.Costs()
    found += problems
    circumstances = schemarules.Circumstances(
        stored=old.expressions if old is not None else frozenset(),
        spares_costs=old is not None and _is_unchanged(spec, old, version),
        costs=costs,
        is_root=True,
    )
    found += schemarules.check(schema, here, circumstances)
    return [*found, *(costs.check(here) if costs is not None else ())]


def _unsupported(schema: schemas.Schema) -> bool:
    """Whether a schema has fields that no structural schema has; what is wrong with them is said elsewhere."""
    return any(
        each.id or each.meta_schema or each.ref or each.pattern_properties or each.dependencies or each.definitions
        or each.additional_items is not None or isinstance(each.items, list) or each.preserves_unknown_fields is False
        for each in schema.everywhere()
    )  # fmt: skip


def _is_unchanged(spec: Spec, old: Spec, version: str) -> bool:
    chosen = version or (spec.versions[0].get("name", "") if spec.versions else "")
    return correlation.same(spec.schema_of(chosen), old.schema_of(chosen))


def _status_schema(written: Document, at: Path) -> list[FieldError]:
    """Where the status is written apart, its schema is looked at apart: nothing at the root may get lost."""
    if written.get("type", "object") != "object":
        detail = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        return [fielderror.invalid(at.child("type"), written["type"], detail)]
    if set(written) <= _ROOT_FIELDS:
        return []
    detail = f"only {_ROOT_NAMES} fields are allowed at the root of the schema if the status subresource is enabled"
    return [fielderror.invalid(at, rendering.wire(written), detail)]


def _subresources(subresources: Document, at: Path) -> list[FieldError]:
    scale = subresources.get("scale")
    if scale is None:
        return []
    found: list[FieldError] = []
    for field, roots in (("specReplicasPath", (".spec.",)), ("statusReplicasPath", (".status.",))):
        place = at.child(f"scale.{field}")
        path = scale.get(field, "")
        found += _json_path(path, place, roots=roots) if path else [fielderror.required(place)]
    selector = scale.get("labelSelectorPath")
    if selector:
        found += _json_path(selector, at.child("scale.labelSelectorPath"), roots=(".spec.", ".status."))
    return found


def _json_path(path: str, at: Path, *, roots: Sequence[str] = ()) -> Errors:
    if path[0] != ".":
        yield fielderror.invalid(at, path, "must be a simple json path starting with .")
    elif roots and not path.startswith(tuple(roots)):
        under = f"either {' or '.join(root[:-1] for root in roots)}" if len(roots) > 1 else roots[0][:-1]
        yield fielderror.invalid(at, path, f"should be a json path under {under}")


def _column(column: Document, at: Path) -> Errors:
    if not column.get("name"):
        yield fielderror.required(at.child("name"))
    kind, form = column.get("type", ""), column.get("format", "")
    wanted = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not kind:
        yield fielderror.required(at.child("type"), wanted)
    elif kind not in _COLUMN_TYPES:
        yield fielderror.invalid(at.child("type"), kind, wanted)
    if form and form not in _COLUMN_FORMATS:
        yield fielderror.invalid(at.child("format"), form, f"must be one of {','.join(_COLUMN_FORMATS)}")
    path = column.get("jsonPath", "")
    place = at.child("JSONPath")
    yield from _json_path(path, place) if path else iter([fielderror.required(place)])


def _selectable(spec: Spec, fields: Sequence[Document], version: str, at: Path) -> list[FieldError]:
    chosen = version or spec.versions[0].get("name", "")
    written = (spec.schema_of(chosen) or {}).get("openAPIV3Schema")
    if written is None:
        detail = "may only be set when `version.schema.openAPIV3Schema` is not included"
        return [fielderror.invalid(at, "", detail)]
    schema = schemas.parse(written)
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, each in enumerate(fields):
        place, path = at.item(index).child("jsonPath"), each.get("jsonPath", "")
        if not path:
            found.append(fielderror.required(place))
            continue
        leads = fieldpaths.find(path, schema, allows_brackets=False)
        if isinstance(leads, str):
            found.append(fielderror.invalid(place, path, f"is an invalid path: {leads}"))
            continue
        if leads.root == "metadata":
            found.append(fielderror.invalid(place, path, "must not point to fields in metadata"))
        if leads.schema is None or leads.schema.type not in _SELECTABLE_TYPES:
            detail = (
                "must point to a field of type string, boolean or integer. "
                "Enum string fields and strings with formats are allowed."
            )
            found.append(fielderror.invalid(place, path, detail))
        if str(leads.path) in seen:
            found.append(fielderror.duplicate(place, path))
        seen.add(str(leads.path))
    if len(seen) > MAX_SELECTABLE_FIELDS:
        found.append(fielderror.too_many(at, len(seen), MAX_SELECTABLE_FIELDS))
    return found


# Conversion


def _conversion(conversion: Document | None, at: Path) -> list[FieldError]:
    if conversion is None:
        return []
    strategy = conversion.get("strategy", "")
    found = list(_choice(strategy, _STRATEGIES, at.child("strategy")))
    webhook = conversion.get("webhook") or {}
    client, versions = webhook.get("clientConfig"), webhook.get("conversionReviewVersions")
    here, reviews = at.child("webhookClientConfig"), at.child("conversionReviewVersions")
    if strategy != "Webhook":
        detail = "should not be set when strategy is not set to Webhook"
        found += [
            fielderror.forbidden(place, detail) for place, value in ((here, client), (reviews, versions)) if value
        ]
        return found
    if client is None:
        found.append(fielderror.required(here, "required when strategy is set to Webhook"))
    else:
        found += webhooks.check_client(client, here)
    return [*found, *_review_versions(versions or (), reviews)]


def _bundle(spec: Spec, old: Spec) -> list[FieldError]:
    """The certificates of a webhook in use; those that were no good before may stay so."""
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


def _review_versions(versions: Sequence[str], at: Path) -> Errors:
    if not versions:
        yield fielderror.required(at)
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield fielderror.invalid(at.item(index), version, "duplicate version")
            continue
        for problem in names.dns1035_label(version):
            yield fielderror.invalid(at.item(index), version, problem)
    if not set(versions) & set(_REVIEW_VERSIONS):
        yield fielderror.invalid(at, list(versions), f"must include at least one of {', '.join(_REVIEW_VERSIONS)}")


# Status, approval


def _status(status: Document) -> Errors:
    return _names(status.get("acceptedNames") or {}, STATUS.child("acceptedNames"))


def _stored_versions(definition: Document) -> Errors:
    stored = (definition.get("status") or {}).get("storedVersions")
    if not stored:
        shown = rendering.NULL if stored is None else stored
        yield fielderror.invalid(_STORED, shown, "must have at least one stored version")
        return
    rest = {version: index for index, version in enumerate(stored)}
    for version in definition["spec"].get("versions") or ():
        name = version.get("name", "")
        if version.get("storage") and name not in rest:
            yield fielderror.invalid(_STORED, list(stored), f"must have the storage version {name}")
        rest.pop(name, None)
    for version, index in rest.items():
        detail = (
            f"missing from spec.versions; {version} was previously a storage version, and must remain in "
            f"spec.versions until a storage migration ensures no data remains persisted in {version} and removes "
            f"{version} from status.storedVersions"
        )
        yield fielderror.invalid(_STORED.item(index), version, detail)


def is_protected(group: str) -> bool:
    """Whether a group is the Kubernetes community's, which approves its APIs."""
    return any(group == name or group.endswith(f".{name}") for name in ("k8s.io", "kubernetes.io"))


def approval(annotation: str) -> tuple[str, str]:
    """What an annotation says about the approval of an API, in one word and in upstream's words."""
    if not annotation:
        detail = f'protected groups must have approval annotation "{APPROVAL}"'
        return "Missing", f"{detail}, see https://github.com/kubernetes/enhancements/pull/1111"
    if annotation.startswith("unapproved"):
        return "Bypassed", f'not approved: "{annotation}"'
    scheme, separator, rest = annotation.partition("://")
    if separator and scheme.isalpha() and rest.partition("/")[0]:
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
