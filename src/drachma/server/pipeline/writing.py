"""The verbs that make and change objects: create, update and patch."""

from collections.abc import Mapping
from typing import Any

import msgspec

from drachma import errors
from drachma.server import documents, objectmeta, schema, status
from drachma.server.calls import options
from drachma.server.decoding import bodies, yamlsyntax
from drachma.server.kinds.strategy import Subject, Write
from drachma.server.ownership import fieldmanagers
from drachma.server.patch import patchdump, patching, strategicerrors
from drachma.server.pipeline import registry
from drachma.server.pipeline.handling import Handler
from drachma.server.presentation import negotiation
from drachma.server.schema import decodeerrors, unknownfields
from drachma.server.surface import resources
from drachma.server.wire import responses


async def create(handler: Handler) -> responses.Response:
    """A new object from the body."""
    subject, write, wanted = await _read(handler, "CreateOptions")
    outcome = await handler.services.registry.create(subject, write, wanted=wanted)
    return handler.answer(201, outcome)


async def update(handler: Handler) -> responses.Response:
    """The object in the body in place of the stored one, or its status only."""
    handler.check_name()
    subject, write, wanted = await _read(handler, "UpdateOptions")
    objectmeta.place(subject.metadata, write.namespace)
    objectmeta.check_name(subject.metadata, write.name)
    outcome = await handler.services.registry.update(lambda _stored: subject.copy(), write, wanted=wanted)
    return handler.answer(201 if outcome.is_created else 200, outcome)


async def patch(handler: Handler) -> responses.Response:
    """The stored object with a patch applied."""
    patch_type = negotiation.patch_type(handler.request.header(b"content-type"))
    handler.check_name()
    body = await handler.request.body()
    wanted = handler.request.write_options("PatchOptions", patch_type=patch_type)
    write = handler.write()
    is_apply = patch_type == negotiation.APPLY_PATCH
    change: registry.Change
    if is_apply:
        change = _Application(handler, write, wanted, configuration=_configuration(body))
    else:
        change = _Patch(handler, write, wanted, patch_type=patch_type, body=body)
    outcome = await handler.services.registry.update(change, write, wanted=wanted, is_apply=is_apply)
    return handler.answer(201 if outcome.is_created else 200, outcome)


async def _read(handler: Handler, kind: str) -> tuple[Subject, Write, options.WriteOptions]:
    """The object in the body, decoded, and how it is to be written."""
    content_type = handler.request.header(b"content-type")
    if kind == "UpdateOptions":
        body = await handler.request.body()
        wanted = handler.request.write_options(kind)
        media_type = negotiation.body_type(content_type)
    else:
        media_type = negotiation.body_type(content_type)
        body = await handler.request.body()
        wanted = handler.request.write_options(kind)
    target = handler.target
    given = bodies.read(body, media_type, wanted=target, validation=wanted.field_validation)
    write = handler.write()
    try:
        subject = handler.strategy.read(given.document, write)
    except errors.DecodeError as error:
        raise bodies.unfit(target, str(error)) from None
    write.warnings.extend(bodies.enforce(given, wanted=target, validation=wanted.field_validation))
    return subject, write, wanted


class _Patch:
    """A JSON, merge or strategic merge patch, as a change of whatever is stored."""

    def __init__(
        self, handler: Handler, write: Write, wanted: options.WriteOptions, *, patch_type: str, body: bytes
    ) -> None:
        self._handler = handler
        self._write = write
        self._wanted = wanted
        self._patch_type = patch_type
        self._is_strategic = patch_type == negotiation.STRATEGIC_MERGE_PATCH
        self._body = body
        self._api_version = write.api_version
        self._schema = schema.of(self._api_version, write.resource.kind)

    def __call__(self, stored: Mapping[str, Any] | None) -> Subject:
        if stored is None:
            raise status.not_found(self._write.resource, self._write.name)
        current = self._handler.strategy.serve(stored, self._write.version)
        patched = patching.apply(
            dict(current),
            content_type=self._patch_type,
            body=self._body,
            schema=self._schema,
            field_validation=self._wanted.field_validation,
        )
        document = patched.document
        if not isinstance(document, dict):
            found = decodeerrors.describe(document)
            version, kind = self._write.version, self._write.resource.kind
            raise self._refuse(document, f"json: cannot unmarshal {found} into Go value of type {version}.{kind}")
        self._check_type(document)
        try:
            subject = self._handler.strategy.read(document, self._write, known=stored)
        except errors.DecodeError as error:
            problem = strategicerrors.explain(document, self._schema) if self._is_strategic else ""
            raise self._refuse(document, problem or str(error)) from None
        self._enforce(document, patched.problems)
        return subject

    def _check_type(self, document: dict[str, Any]) -> None:
        api_version, kind = document.get("apiVersion"), document.get("kind")
        resource = self._write.resource
        if api_version == self._api_version and kind == resource.kind:
            return
        if isinstance(api_version, str) and isinstance(kind, str):
            if resources.CATALOG.of_kind(api_version, kind) is resource:
                return
            problem = f'no kind "{kind}" is registered for version "{api_version}" in scheme "{bodies.SCHEME}"'
        else:
            problem = f"Object 'Kind' is missing in '{self._shown(document)}'"
        raise self._refuse(document, problem)

    def _enforce(self, document: dict[str, Any], problems: tuple[str, ...]) -> None:
        if self._wanted.field_validation == "Ignore":
            return
        find = strategicerrors.unknown_fields if self._is_strategic else unknownfields.unknown_fields
        found = [*problems, *find(document, self._schema)]
        if found and self._wanted.field_validation == "Strict":
            raise self._refuse(document, f"strict decoding error: {', '.join(found)}")
        self._write.warnings.extend(found)

    def _refuse(self, document: Any, problem: str) -> status.StatusError:
        return status.invalid_patch(self._shown(document), detail=problem)

    def _shown(self, document: Any) -> str:
        patch = msgspec.json.decode(self._body)
        if self._is_strategic:
            return documents.printed(patch)
        show = patchdump.after_merge if self._patch_type == negotiation.MERGE_PATCH else patchdump.after_operations
        return show(document, patch)


class _Application:
    """Server-side apply, as a change of what is stored or of nothing."""

    def __init__(
        self, handler: Handler, write: Write, wanted: options.WriteOptions, *, configuration: dict[str, Any]
    ) -> None:
        self._handler = handler
        self._write = write
        self._wanted = wanted
        self._configuration = configuration

    def __call__(self, stored: Mapping[str, Any] | None) -> Subject:
        strategy, write = self._handler.strategy, self._write
        live = None if stored is None else strategy.serve(stored, write.version)
        try:
            # Owners who wrote in another version have their fields compared in it, so this decodes, too.
            applied = fieldmanagers.applied(live, self._configuration, write, strategy=strategy, wanted=self._wanted)
            applied.setdefault("apiVersion", write.api_version)
            applied.setdefault("kind", write.resource.kind)
            subject = strategy.read(applied, write)
        except errors.DecodeError as error:
            raise bodies.unfit(self._handler.target, str(error)) from None
        subject.is_owned = True
        return subject


def _configuration(body: bytes) -> dict[str, Any]:
    try:
        content = yamlsyntax.read(body).content
    except errors.DecodeError as error:
        raise status.bad_request(f"error decoding patch: yaml: {error}") from None
    if not isinstance(content, dict):
        kind = decodeerrors.describe(content)
        problem = f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        raise status.bad_request(f"error decoding patch: error unmarshaling JSON: while decoding JSON: {problem}")
    return content
