"""Patches: the stored object with a JSON, merge or strategic merge patch, or with a configuration applied to it.

Each is a change for :class:`drachma.server.pipeline.update.Update`: made from whatever is stored when it is decided.
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
from drachma.server.pipeline import claimnames, claimstate, finalizers, update
from drachma.server.pipeline.plan import Plan
from drachma.server.pipeline.services import Services, check_name
from drachma.server.presentation import negotiation
from drachma.server.schema import decodeerrors, unknownfields
from drachma.server.surface.strategy import Subject, Write


def plan(services: Services, call: Call) -> Plan:
    """The stored object with a patch applied; an apply makes one where there is none."""
    check_name(call.target)
    match call.body.content:
        case transactions.ClaimState() as state:
            return claimstate.plan(services, call, state)
        case transactions.ClaimNames() as names:
            return _plan_names(services, call, names)
        case dict() as content:
            return finalizers.plan(services, call, content)
    patch_type = negotiation.patch_type(call.body.media_type, call.target.resource.patch_types)
    wanted = options.for_write(call.query, "PatchOptions", patch_type=patch_type)
    write = services.write(call)
    is_apply = patch_type == mediatypes.APPLY_PATCH
    change: update.Change
    lifts = bodies.has_sources(call.body.data, call.surface, call.target.resource)
    if is_apply:
        configured = configuration(call.body.data)
        change = _Application(podsources.lifted(configured) if lifts else configured, write, wanted=wanted)
    else:
        change = _Patch(call.body.data, patch_type, write, wanted=wanted, lifts=lifts)
    return update.changing(services, call, update.Update(services, change, write, wanted=wanted, creates=is_apply))


def _plan_names(services: Services, call: Call, names: transactions.ClaimNames) -> Plan:
    wanted, write = options.for_write(call.query, "PatchOptions"), services.write(call)

    def otherwise(patch: bytes) -> update.Change:
        return _Patch(patch, mediatypes.STRATEGIC_MERGE_PATCH, write, wanted=wanted)

    change = claimnames.ClaimNames(names, write, otherwise=otherwise)
    return update.changing(services, call, update.Update(services, change, write, wanted=wanted))


class _Patch:
    """A JSON, merge or strategic merge patch, as a change of whatever is stored."""

    def __init__(
        self, body: bytes, patch_type: str, write: Write, *, wanted: options.WriteOptions, lifts: bool = False
    ) -> None:
        """``lifts``: the body may have pods as they were at the time of v1alpha2."""
        self._strategy = write.served.strategy
        self._write = write
        self._wanted = wanted
        self._patch_type = patch_type
        self._is_strategic = patch_type == mediatypes.STRATEGIC_MERGE_PATCH
        self._body = _lifted(body) if lifts and patch_type != mediatypes.JSON_PATCH else body
        self._lifts = lifts
        self._api_version = write.api_version
        self._schema = write.resource.schema(write.version)

    def __call__(self, stored: Mapping[str, Any] | None) -> Subject:
        if stored is None:
            raise status.not_found(self._write.resource, self._write.name)
        current = self._strategy.serve(stored, self._write.version)
        patched = patching.apply(
            dict(current),
            content_type=self._patch_type,
            body=self._body,
            schema=self._schema,
            field_validation=self._wanted.field_validation,
        )
        # Operations may put together what they put in.
        document = podsources.lifted(patched.document) if self._lifts else patched.document
        if not isinstance(document, dict):
            found = decodeerrors.describe(document)
            version, kind = self._write.version, self._write.resource.kind
            raise self._refuse(document, f"json: cannot unmarshal {found} into Go value of type {version}.{kind}")
        self._check_type(document)
        try:
            subject = self._strategy.reread(document, current, self._write)
        except errors.DecodeError as error:
            problem = strategicerrors.explain(document, self._schema) if self._is_strategic else ""
            raise self._refuse(document, problem or str(error)) from None
        # What is stored has no fields that nobody knows.
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
            problem = f"Object 'Kind' is missing in '{self._shown(document)}'"
        raise self._refuse(document, problem)

    def _enforce(self, fields: dict[str, Any], problems: tuple[str, ...], document: dict[str, Any]) -> None:
        """Refuses ``document``, or warns, if there is something unknown in its ``fields``."""
        if self._wanted.field_validation == "Ignore":
            return
        find = strategicerrors.unknown_fields if self._is_strategic else unknownfields.unknown_fields
        found = [*problems, *find(fields, self._schema)]
        if found and self._wanted.field_validation == "Strict":
            raise self._refuse(document, f"strict decoding error: {', '.join(found)}")
        self._write.warnings.extend(found)

    def _refuse(self, document: Any, problem: str) -> status.StatusError:
        return status.invalid_patch(self._shown(document), detail=problem)

    def _shown(self, document: Any) -> str:
        patch = msgspec.json.decode(self._body)
        if self._is_strategic:
            return documents.printed(patch)
        show = patchdump.after_merge if self._patch_type == mediatypes.MERGE_PATCH else patchdump.after_operations
        return show(document, patch)


class _Application:
    """Server-side apply, as a change of what is stored or of nothing."""

    def __init__(self, configuration: dict[str, Any], write: Write, *, wanted: options.WriteOptions) -> None:
        self._write = write
        self._wanted = wanted
        self._configuration = configuration

    def __call__(self, stored: Mapping[str, Any] | None) -> Subject:
        strategy, write = self._write.served.strategy, self._write
        live = None if stored is None else strategy.serve(stored, write.version)
        try:
            # Owners who wrote in another version have their fields compared in it, so this decodes, too.
            applied = fieldmanagers.applied(live, self._configuration, write, wanted=self._wanted)
            applied.setdefault("apiVersion", write.api_version)
            applied.setdefault("kind", write.resource.kind)
            subject = strategy.read(applied, write)
        except errors.DecodeError as error:
            types = write.resource.schema(write.version)
            problem = strategicerrors.explain(self._configuration, types) or str(error)
            raise apply.unconvertible(self._configuration, problem) from None
        subject.is_owned = True
        return subject


def _lifted(patch: bytes) -> bytes:
    """A patch in which pods are as they are now; what cannot be read is left to whoever refuses it."""
    try:
        content = jsonsyntax.read(patch)
    except errors.DecodeError:
        return patch
    lifted = podsources.lifted(content)
    return patch if lifted is content else msgspec.json.encode(lifted)


def configuration(body: bytes) -> dict[str, Any]:
    """What is applied; a 400 for what is no document."""
    try:
        content = yamlsyntax.read(body).content
    except errors.DecodeError as error:
        raise status.bad_request(f"error decoding patch: error converting YAML to JSON: yaml: {error}") from None
    if not isinstance(content, dict):
        kind = decodeerrors.describe(content)
        problem = f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        raise status.bad_request(f"error decoding patch: error unmarshaling JSON: while decoding JSON: {problem}")
    return content
