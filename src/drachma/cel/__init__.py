"""CEL, the language of device selectors: compiled once, evaluated per device, exact and with its cost counted."""

from drachma.cel.cache import Cache, device_programs
from drachma.cel.device import Device
from drachma.cel.environment import Expressions, device_environment
from drachma.cel.program import CompilationError, EvaluationError, Outcome, Program, compile_expression

__all__ = [
    "Cache",
    "CompilationError",
    "Device",
    "EvaluationError",
    "Expressions",
    "Outcome",
    "Program",
    "compile_expression",
    "device_environment",
    "device_programs",
]
