"""Optional values: ``.?``, ``[?]``, ``optional.of`` and what can be asked of an optional."""

from drachma.cel import declarations

FUNCTIONS = declarations.table("""\
_?._
    select_optional_field (dyn, string) -> optional_type(V)
_[?_]
    list_optindex_optional_int (list(V), int) -> optional_type(V)
    optional_list_optindex_optional_int (optional_type(list(V)), int) -> optional_type(V)
    map_optindex_optional_value (map(K, V), K) -> optional_type(V)
    optional_map_optindex_optional_value (optional_type(map(K, V)), K) -> optional_type(V)
_[_]
    optional_list_index_int (optional_type(list(V)), int) -> optional_type(V)
    optional_map_index_value (optional_type(map(K, V)), K) -> optional_type(V)
first
    list_first list(V).() -> optional_type(V)
hasValue
    optional_hasValue optional_type(V).() -> bool
last
    list_last list(V).() -> optional_type(V)
optional.none
    optional_none () -> optional_type(V)
optional.of
    optional_of (V) -> optional_type(V)
optional.ofNonZeroValue
    optional_ofNonZeroValue (V) -> optional_type(V)
optional.unwrap
    optional_unwrap (list(optional_type(V))) -> list(V)
or
    optional_or_optional optional_type(V).(optional_type(V)) -> optional_type(V)
orValue
    optional_orValue_value optional_type(V).(V) -> V
unwrapOpt
    optional_unwrapOpt list(optional_type(V)).() -> list(V)
value
    optional_value optional_type(V).() -> V
""")
