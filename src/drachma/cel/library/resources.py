"""Kubernetes' quantity and semver libraries.

Upstream declares ``sign`` as a plain function: ``sign(q)`` compiles and ``q.sign()`` does not.
"""

from drachma.cel import declarations

QUANTITIES = declarations.table("""\
add
    quantity_add kubernetes.Quantity.(kubernetes.Quantity) -> kubernetes.Quantity
    quantity_add_int kubernetes.Quantity.(int) -> kubernetes.Quantity
asApproximateFloat
    quantity_get_float kubernetes.Quantity.() -> double
asInteger
    quantity_get_int kubernetes.Quantity.() -> int
isInteger
    quantity_is_integer kubernetes.Quantity.() -> bool
isQuantity
    is_quantity_string (string) -> bool
quantity
    string_to_quantity (string) -> kubernetes.Quantity
sign
    quantity_sign (kubernetes.Quantity) -> int
sub
    quantity_sub kubernetes.Quantity.(kubernetes.Quantity) -> kubernetes.Quantity
    quantity_sub_int kubernetes.Quantity.(int) -> kubernetes.Quantity
compareTo
    quantity_compare_to kubernetes.Quantity.(kubernetes.Quantity) -> int
isGreaterThan
    quantity_is_greater_than kubernetes.Quantity.(kubernetes.Quantity) -> bool
isLessThan
    quantity_is_less_than kubernetes.Quantity.(kubernetes.Quantity) -> bool
""")

VERSIONS = declarations.table("""\
isSemver
    is_semver_string (string) -> bool
    is_semver_string_bool (string, bool) -> bool
major
    semver_major kubernetes.Semver.() -> int
minor
    semver_minor kubernetes.Semver.() -> int
patch
    semver_patch kubernetes.Semver.() -> int
semver
    string_to_semver (string) -> kubernetes.Semver
    string_bool_to_semver (string, bool) -> kubernetes.Semver
compareTo
    semver_compare_to kubernetes.Semver.(kubernetes.Semver) -> int
isGreaterThan
    semver_is_greater_than kubernetes.Semver.(kubernetes.Semver) -> bool
isLessThan
    semver_is_less_than kubernetes.Semver.(kubernetes.Semver) -> bool
""")
