"""Hooks by which msgspec decodes and encodes quantities."""

from typing import Any

from drachma.values import quantity


def decode(expected_type: type, value: Any) -> Any:
    """Decode a Quantity, written as a string or, as Kubernetes allows, as a number; msgspec's ``dec_hook``.

    As upstream does in JSON, white space around the text is ignored.
    """
    if expected_type is not quantity.Quantity:
        raise NotImplementedError(f"no hook decodes {expected_type.__name__}")
    if isinstance(value, str):
        return quantity.Quantity.parse(value.strip())
    if isinstance(value, int) and not isinstance(value, bool):
        return quantity.Quantity.parse(str(value))
    if isinstance(value, float):
        return quantity.Quantity.parse(f"{value:.0f}" if value.is_integer() and abs(value) < 1e21 else repr(value))
    raise TypeError(f"expected quantity, got {type(value).__name__}")


def encode(value: Any) -> Any:
    """Encode a Quantity in the spelling that it was read in; msgspec's ``enc_hook``."""
    if isinstance(value, quantity.Quantity):
        return value.text
    raise NotImplementedError(f"no hook encodes {type(value).__name__}")
