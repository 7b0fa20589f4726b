"""Recorded lines that are not replayed, or replayed several times, with the reason; docs/differences.md lists them.

A title with slashes is excluded by itself or by its beginning: ``math_ext`` stands for everything in that section.
"""

from typing import Any, Final

_VERSION: Final = "not in version 2 of the strings library, which Kubernetes has"
_FORMAT: Final = "version 2 of the strings library, which Kubernetes has, prints this differently or refuses it"
_LENIENT: Final = "Go's implementation, which Kubernetes runs, accepts this"
_KEY: Final = "Go refuses a key of bytes when it builds the program"
_ADDRESS: Final = "Kubernetes refuses IPv4 written as IPv6"
_DEDUCED: Final = "of two types that fit each other Go's checker, which Kubernetes runs, takes the later one"
_BACKSLASH: Final = "the case expects a backslash that is not there; Go agrees"

_SLICES: Final = "the line lacks the flavors of the replaced workload"

_AWAITED: Final = "the line lacks the pods that the controller has deleted and still finds in its cache"

_UNSAID: Final = "the line lacks the invalid selector of the queue"

LINES: Final[dict[str, dict[str, str]]] = {
    "kueue-flavors": {
        "workload slice preemption does not fit in the original workload resource flavor": _SLICES,
        "workload slice preemption fits in the original workload resource flavor": _SLICES,
    },
    "kueue-workload-reconcile": {
        "inadmissible workload due to broken ClusterQueue namespace selector (observability enabled)": _UNSAID,
        "reconcile bypassed workload when SchedulingEquivalenceHashing is enabled (stale status -> bypassed status)": (
            "the line lacks the earlier attempts"
        ),
    },
    "kueue-jobs": {
        "waiting to observe previous deletion of excess pod, no pods are deleted": _AWAITED,
        "no failed pods are finalized while waiting for expectations": _AWAITED,
    },
    "cel-spec": {
        "block_ext": "cel.block is not a macro of Kubernetes",
        "encoders_ext": "the base64 library is not in Kubernetes",
        "math_ext": "the math library is not in Kubernetes",
        "string_ext/reverse": _VERSION,
        "fields/map_fields/map_bad_key_type_or_true": _KEY,
        "fields/map_fields/map_bad_key_type_and_false": _KEY,
        "fields/qualified_identifier_resolution/map_key_float": _LENIENT,
        "fields/qualified_identifier_resolution/map_value_repeat_key": _LENIENT,
        "fields/qualified_identifier_resolution/map_value_repeat_key_heterogeneous": _LENIENT,
        "network_ext/ipv4/ipv4_equals_ipv6": _ADDRESS,
        "network_ext/ipv4/ipv4_not_equals_ipv6": _ADDRESS,
        "optionals/optionals/map_null_entry_no_such_key": _LENIENT,
        "optionals/optionals/map_present_key_invalid_field": _LENIENT,
        "parse/bytes_literals/triple_single_quoted_unescaped_punctuation": _BACKSLASH,
        "parse/bytes_literals/triple_double_quoted_unescaped_punctuation": _BACKSLASH,
        "type_deduction/legacy_nullable_types/null_assignable_to_abstract_parameter_candidate": _DEDUCED,
        "string_ext/value_errors/indexof_out_of_range": _LENIENT,
        "string_ext/value_errors/lastindexof_out_of_range": _LENIENT,
        **{
            f"string_ext/format/{name}": _FORMAT
            for name in (
                "NaN support for decimal",
                "NaN support for scientific notation",
                "default precision for fixed-point clause with int",
                "default precision for fixed-point clause with uint",
                "default precision for scientific notation",
                "default precision for scientific notation with int",
                "default precision for scientific notation with uint",
                "dyntype NaN/infinity support",
                "dyntype support for lists",
                "dyntype support for maps",
                "dyntype support for scientific notation",
                "list support for string",
                "map support (all key types)",
                "map support for string",
                "negative infinity support for decimal",
                "negative infinity support for fixed-point",
                "negative infinity support for scientific notation",
                "positive infinity support for decimal",
                "positive infinity support for fixed-point",
                "positive infinity support for scientific notation",
                "scientific notation formatting clause",
                "scientific notation formatting clause in a string variable",
            )
        },
    },
}

RACES: Final[dict[str, dict[str, Any]]] = {
    # The ttl controller had annotated the new node before the next request.
    "node-node-labels-and-taints": {
        "before": 3,
        "method": "GET",
        "path": "/api/v1/nodes/n07",
        "wait": {"pointer": "/metadata/annotations/node.alpha.kubernetes.io~1ttl"},
    },
}
"""Scenarios in which a controller came before a step when they were recorded: the replay waits for it there."""


def reason(file: str, title: str) -> str | None:
    """Why a line is not replayed; None if it is."""
    parts = title.split("/")
    beginnings = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
    lines = LINES.get(file, {})
    return next((lines[beginning] for beginning in beginnings if beginning in lines), None)
