"""The sets extension: lists compared as sets."""

from drachma.cel import declarations

FUNCTIONS = declarations.table("""\
sets.contains
    list_sets_contains_list (list(T), list(T)) -> bool
sets.equivalent
    list_sets_equivalent_list (list(T), list(T)) -> bool
sets.intersects
    list_sets_intersects_list (list(T), list(T)) -> bool
""")
