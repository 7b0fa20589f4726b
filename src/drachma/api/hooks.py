"""How msgspec reads and writes the value types it does not know itself."""

from typing import Any

from drachma.values import quantity


def decode(wanted: type, found: Any) -> Any:
    """msgspec's ``dec_hook``: a Quantity may be written as a string or, as Kubernetes allows, as a number.

    White space around the text is no part of it, as upstream has it in JSON.
    """
    if wanted is not quantity.Quantity:
        raise NotImplementedError(f"no hook decodes {wanted.__name__}")
    if isinstance(found, str):
        return quantity.Quantity.parse(found.strip())
    if isinstance(found, int) and not isinstance(found, bool):
        return quantity.Quantity.parse(str(found))
    if isinstance(found, float):
        return quantity.Quantity.parse(f"{found:.0f}" if found.is_integer() and abs(found) < 1e21 else repr(found))
    raise TypeError(f"expected quantity, got {type(found).__name__}")


def encode(value: Any) -> Any:
    """msgspec's ``enc_hook``: a Quantity goes out in the spelling it came in."""
    if isinstance(value, quantity.Quantity):
        return value.text
    raise NotImplementedError(f"no hook encodes {type(value).__name__}")
