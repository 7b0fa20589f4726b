"""Answers of the dispatcher as HTTP responses in the negotiated form."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar, assert_never

from drachma.server import lanes, mediatypes, status
from drachma.server.calls.call import Call
from drachma.server.pipeline.answer import Answer, NodeEndpoint, Text, Unstored, Verbatim
from drachma.server.presentation import encoding, forms, negotiation
from drachma.server.reads import listing, watching
from drachma.server.surface.consultation import PendingError
from drachma.server.wire import frames, responses, streaming
from drachma.store import record

_ASKED_TOGETHER: Final = 50
_LARGE_LIST: Final = 256 * 1024
"""Bytes from which on a list is sent piece by piece instead of being assembled first."""
_T = TypeVar("_T")


def is_long(answer: Answer, call: Call, output: negotiation.Output) -> bool:
    """Return True if writing an answer takes long: it is large, and not in the stored form."""
    content = answer.content
    if not isinstance(content, record.Record | listing.Listed):
        return False
    if output.is_plain and call.target.version == call.target.resource.versions[0]:
        return False
    least = lanes.LARGE if output.media_type == mediatypes.YAML else lanes.VERY_LARGE
    if isinstance(content, record.Record):
        return len(content.data) >= least
    return sum(len(each.data) for each in content.records) >= least


class _StoredList:
    """List of objects that are sent in the stored form."""

    def __init__(
        self, start: bytes, encoder: encoding.Encoder, version: str, *, records: Sequence[record.Record], size: int
    ) -> None:
        self.size: Final = size
        self._start: Final = start
        self._encoder: Final = encoder
        self._version: Final = version
        self._records: Final = records

    def parts(self) -> Iterator[bytes]:
        """Yield the bytes of the list, one object after the other."""
        yield self._start
        for number, item in enumerate(self._records):
            if number:
                yield b","
            yield self._encoder.item(item, self._version)
        yield b"]}\n"


class Presenter:
    """Writes answers."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self.frames: Final = frames.Frames()

    def response(self, answer: Answer, call: Call, output: negotiation.Output) -> responses.Response:
        """Return the response to a call other than a watch; a 406 for a form that the answer does not have."""
        content = answer.content
        match content:
            case record.Record():
                return self._present_stored(answer.code, content, call, output=output)
            case Unstored():
                return self._object(answer.code, content.document, call, output=output)
            case Verbatim():
                return responses.document(answer.code, content.document, output)
            case listing.Listed():
                return self._list(answer.code, content, call, output=output)
            case Text():
                return responses.text(answer.code, content.text)
            case watching.Watch() | NodeEndpoint():
                raise AssertionError("what goes on for long is not answered at once")
        assert_never(content)

    def framer(self, call: Call, output: negotiation.Output) -> streaming.Framer:
        """Return the framer of a watch's events; a 406 for a form that is not a stream of JSON."""
        target = call.target
        encoder = _encoder(call)
        if output.media_type != mediatypes.JSON:
            raise status.not_acceptable(mediatypes.STREAM_TYPES)
        if output.form is negotiation.Form.OBJECT:
            return streaming.PlainFramer(encoder, target.version, frames=self.frames)
        convert = forms.event_converter(
            resource=target.resource, output=output, context=self._context(call), clock=self._clock
        )
        # Rows of a table show ages, and the first one has the columns. Metadata is the same for all watches.
        shares = output.form is not negotiation.Form.TABLE
        return streaming.DocumentFramer(
            encoder, target.version, convert=convert, frames=self.frames, form=output.meta_version if shares else None
        )

    def _present_stored(
        self, code: int, stored_object: record.Record, call: Call, *, output: negotiation.Output
    ) -> responses.Response:
        encoder, version = _encoder(call), call.target.version
        if output.is_plain:
            return responses.plain(code, encoder.object(stored_object, version))
        return self._object(code, encoder.document(stored_object, version), call, output=output)

    def _object(
        self, code: int, document: Mapping[str, Any], call: Call, *, output: negotiation.Output
    ) -> responses.Response:
        content = forms.present_object(
            document, resource=call.target.resource, output=output, context=self._context(call)
        )
        return responses.document(code, content, output)

    def _list(self, code: int, listed: listing.Listed, call: Call, *, output: negotiation.Output) -> responses.Response:
        target = call.target
        resource, version = target.resource, target.version
        encoder, head = _encoder(call), forms.list_metadata(listed)
        if output.is_plain:
            envelope = {"kind": resource.list_kind, "apiVersion": target.api_version, "metadata": head}
            start = b'%b,"items":[' % encoding.encode(envelope)[:-1]
            size = sum(len(item.data) for item in listed.records)
            if size > _LARGE_LIST and all(encoder.is_stored_form(item, version) for item in listed.records):
                return responses.Response(code, _StoredList(start, encoder, version, records=listed.records, size=size))
            items = b",".join(_each(lambda item: encoder.item(item, version), listed.records))
            return responses.plain(code, b"%b%b]}" % (start, items))
        objects = _each(lambda item: encoder.document(item, version), listed.records)
        content = forms.present_list(
            objects, head, resource=resource, version=version, output=output, context=self._context(call)
        )
        return responses.document(code, content, output)

    def _context(self, call: Call) -> forms.Context:
        return forms.Context.of(call.query, now=self._clock())


def _each(show: Callable[[record.Record], _T], records: Sequence[record.Record]) -> list[_T]:
    """Return all records in their shown form. Questions that this needs answers to are raised together, in batches."""
    results: list[_T] = []
    open_questions: list[PendingError] = []
    for item in records:
        try:
            results.append(show(item))
        except PendingError as error:
            open_questions.append(error)
            if len(open_questions) == _ASKED_TOGETHER:
                break
    if open_questions:
        raise PendingError(open_questions[0].consultation, [each.questions[0] for each in open_questions])
    return results


def _encoder(call: Call) -> encoding.Encoder:
    return call.surface.served(call.target.resource).derive(encoding.Encoder)
