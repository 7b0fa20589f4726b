"""Patches of the stored object: JSON, merge and strategic merge patches, and server-side apply.

Each makes a change for :class:`drachma.server.pipeline.update.Update` from the stored object at the time of the
decision.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from drachma import errors
from drachma.claims import podsources
from drachma.client import transactions
from drachma.server import documents, mediatypes, status
from drachma.server.calls import options
from drachma.server.calls.call import Call
from drachma.server.decoding import bodies, jsonsyntax, yamlsyntax
from drachma.server.ownership import apply, fieldmanagers
from drachma.server.patch import patchdump, patching, strategicerrors
from drachma.server.pipeline import finalizers, intent, statuschange, update
from drachma.server.pipeline.plan import Plan
from drachma.server.pipeline.services import Services, check_name
from drachma.server.presentation import negotiation
from drachma.server.schema import decodeerrors, unknownfields
from drachma.server.surface.strategy import Subject, Write
from drachma.store import record


def plan(services: Services, call: Call) -> Plan:
    """Plan a patch of the stored object. An apply creates the object if there is none."""
    check_name(call.target)
    match call.body.content:
        case transactions.StatusChange() as status_change:
            return statuschange.plan(services, call, status_change, merge=_merge_patch)
        case dict() as content:
            return finalizers.plan(services, call, content)
    patch_type = negotiation.patch_type(call.body.media_type, call.target.resource.patch_types)
    write_options = options.read_write_options(call.query, "PatchOptions", patch_type=patch_type)
    write = services.write(call)
    is_apply = patch_type == mediatypes.APPLY_PATCH
    change: update.Change
    lifts = bodies.has_sources(call.body.data, call.surface, call.target.resource)
    if is_apply:
        configured = configuration(call.body.data)
        change = _Application(
            podsources.lift_sources(configured) if lifts else configured, write, write_options=write_options
        )
    else:
        change = _Patch(call.body.data, patch_type, write, write_options=write_options, lifts=lifts)
    planned_update: update.Update
    if (
        patch_type == mediatypes.MERGE_PATCH
        and write.subresource == "status"
        and write.served.fast_path.repeats_patches
    ):
        planned_update = MergedStatusPatch(services, change, write, body=call.body.data, write_options=write_options)
    else:
        planned_update = update.Update(services, change, write, write_options=write_options, creates=is_apply)
    return update.make_plan(services, call, planned_update)


def _merge_patch(body: bytes, write: Write, options: options.WriteOptions) -> update.Change:
    return _Patch(body, mediatypes.STRATEGIC_MERGE_PATCH, write, write_options=options)


class MergedStatusPatch(update.Update):
    """Intent to change the status of an object by a merge patch in a form that other intents may have too."""

    def __init__(
        self,
        services: Services,
        change: update.Change,
        write: Write,
        *,
        body: bytes,
        write_options: options.WriteOptions,
    ) -> None:
        super().__init__(services, change, write, write_options=write_options)
        self._body = body

    def imprint(self, get: intent.Get) -> intent.Imprint | None:
        write = self.write
        existing = None if self.is_dry_run else get(record.Key(write.resource.key, write.namespace, write.name))
        if existing is None or not existing.data:
            return None
        marks = write.served.fast_path.mark_patch(self._body, write)
        if marks is None:
            return None
        return update.make_imprint(
            self,
            existing,
            marks,
            self._body,
            services=self._services,
            options=self._options,
            make_specimen=self._make_specimen,
        )

    def _make_specimen(self, write: Write, body: bytes, _stored: record.Record | None) -> "MergedStatusPatch":
        change = _Patch(body, mediatypes.MERGE_PATCH, write, write_options=self._options)
        return MergedStatusPatch(self._services, change, write, body=body, write_options=self._options)


class _Patch:
    """Change of the stored object by a JSON, merge or strategic merge patch."""

    def __init__(
        self, body: bytes, patch_type: str, write: Write, *, write_options: options.WriteOptions, lifts: bool = False
    ) -> None:
        """``lifts``: the body may have pods in the form of v1alpha2."""
        self._strategy = write.served.strategy
        self._write = write
        self._options = write_options
        self._patch_type = patch_type
        self._is_strategic = patch_type == mediatypes.STRATEGIC_MERGE_PATCH
        self._body = _lift_pods(body) if lifts and patch_type != mediatypes.JSON_PATCH else body
        self._lifts = lifts
        self._api_version = write.api_version
        self._schema = write.resource.schema(write.version)

    def __call__(self, existing: Mapping[str, Any] | None) -> Subject:
        if existing is None:
            raise status.not_found(self._write.resource, self._write.name)
        current = self._strategy.serve(existing, self._write.version)
        patched = patching.apply(
            dict(current),
            content_type=self._patch_type,
            body=self._body,
            schema=self._schema,
            field_validation=self._options.field_validation,
        )
        # JSON patch operations may assemble a pod in its old form.
        document = podsources.lift_sources(patched.document) if self._lifts else patched.document
        if not isinstance(document, dict):
            go_type = decodeerrors.describe(document)
            version, kind = self._write.version, self._write.resource.kind
            raise self._refuse(document, f"json: cannot unmarshal {go_type} into Go value of type {version}.{kind}")
        self._check_type(document)
        try:
            subject = self._write.served.fast_path.read_patched(document, current, self._write)
        except errors.DecodeError as error:
            problem = strategicerrors.explain(document, self._schema) if self._is_strategic else ""
            raise self._refuse(document, problem or str(error)) from None
        # The stored object has no unknown fields.
        fields = document if subject.touches is None else {name: document[name] for name in subject.touches}
        self._enforce(fields, patched.problems, document)
        return subject

    def _check_type(self, document: dict[str, Any]) -> None:
        api_version, kind = document.get("apiVersion"), document.get("kind")
        resource = self._write.resource
        if api_version == self._api_version and kind == resource.kind:
            return
        if isinstance(api_version, str) and isinstance(kind, str):
            if kind == resource.kind and api_version in resource.api_versions:
                return
            problem = f'no kind "{kind}" is registered for version "{api_version}" in scheme "{bodies.SCHEME}"'
        else:
            problem = f"Object 'Kind' is missing in '{self._format_patch(document)}'"
        raise self._refuse(document, problem)

    def _enforce(self, fields: dict[str, Any], problems: tuple[str, ...], document: dict[str, Any]) -> None:
        """Refuse ``document`` or warn, as field validation asks, if there are unknown ``fields``."""
        if self._options.field_validation == "Ignore":
            return
        find = strategicerrors.unknown_fields if self._is_strategic else unknownfields.unknown_fields
        messages = [*problems, *find(fields, self._schema)]
        if messages and self._options.field_validation == "Strict":
            raise self._refuse(document, f"strict decoding error: {', '.join(messages)}")
        self._write.warnings.extend(messages)

    def _refuse(self, document: Any, problem: str) -> status.StatusError:
        return status.invalid_patch(self._format_patch(document), detail=problem)

    def _format_patch(self, document: Any) -> str:
        patch = msgspec.json.decode(self._body)
        if self._is_strategic:
            return documents.printed(patch)
        show = patchdump.format_merged if self._patch_type == mediatypes.MERGE_PATCH else patchdump.format_operated
        return show(document, patch)


class _Application:
    """Change of the stored object, or of nothing, by server-side apply."""

    def __init__(self, configuration: dict[str, Any], write: Write, *, write_options: options.WriteOptions) -> None:
        self._write = write
        self._options = write_options
        self._configuration = configuration

    def __call__(self, existing: Mapping[str, Any] | None) -> Subject:
        strategy, write = self._write.served.strategy, self._write
        live = None if existing is None else strategy.serve(existing, write.version)
        try:
            # Fields of managers that wrote in another version are compared in that version, so this decodes, too.
            applied = fieldmanagers.apply_configuration(live, self._configuration, write, write_options=self._options)
            applied.setdefault("apiVersion", write.api_version)
            applied.setdefault("kind", write.resource.kind)
            subject = strategy.read(applied, write)
        except errors.DecodeError as error:
            types = write.resource.schema(write.version)
            problem = strategicerrors.explain(self._configuration, types) or str(error)
            raise apply.unconvertible(self._configuration, problem) from None
        subject.is_owned = True
        return subject


def _lift_pods(patch: bytes) -> bytes:
    """Return a patch with pods in their current form; a patch that cannot be read is returned as it is."""
    try:
        content = jsonsyntax.read(patch)
    except errors.DecodeError:
        return patch
    lifted = podsources.lift_sources(content)
    return patch if lifted is content else msgspec.json.encode(lifted)


def configuration(body: bytes) -> dict[str, Any]:
    """Return the configuration to apply; a 400 if the body is not a document."""
    try:
        content = yamlsyntax.read(body).content
    except errors.DecodeError as error:
        raise status.bad_request(f"error decoding patch: error converting YAML to JSON: yaml: {error}") from None
    if not isinstance(content, dict):
        kind = decodeerrors.describe(content)
        problem = f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        raise status.bad_request(f"error decoding patch: error unmarshaling JSON: while decoding JSON: {problem}")
    return content
