"""Rules for opaque configuration in classes, claims and allocations."""

from drachma.api import devices
from drachma.validation import fielderror, formats, limits
from drachma.validation.context import Context
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path


def check(
    config: devices.OpaqueDeviceConfiguration | None, at: Path, *, context: Context, is_stored: bool = False
) -> Errors:
    """A configuration must be there, name a driver, and be a JSON object that is not too long."""
    if config is None:
        yield fielderror.required(at.child("opaque"))
        return
    below = at.child("opaque")
    yield from fielderror.covered(formats.driver_name(config.driver, below.child("driver")))
    parameters = below.child("parameters")
    yield from formats.json_object(
        config.parameters, parameters, context=context, limit=limits.OPAQUE_BYTES, is_stored=is_stored
    )
