"""The function that two-variable comprehensions over maps expand to; an expression cannot write its name."""

from drachma.cel import declarations

FUNCTIONS = declarations.table("""\
cel.@mapInsert
    @mapInsert_map_key_value (map(K, V), K, V) -> map(K, V)
    @mapInsert_map_map (map(K, V), map(K, V)) -> map(K, V)
""")
