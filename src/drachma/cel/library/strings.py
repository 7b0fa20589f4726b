"""The strings extension in its version 2: no ``reverse``, and ``format`` with the older rules."""

from drachma.cel import declarations

FUNCTIONS = declarations.table("""\
charAt
    string_char_at_int string.(int) -> string
format
    string_format string.(list(dyn)) -> string
indexOf
    string_index_of_string string.(string) -> int
    string_index_of_string_int string.(string, int) -> int
lastIndexOf
    string_last_index_of_string string.(string) -> int
    string_last_index_of_string_int string.(string, int) -> int
join
    list_join list(string).() -> string
    list_join_string list(string).(string) -> string
lowerAscii
    string_lower_ascii string.() -> string
replace
    string_replace_string_string string.(string, string) -> string
    string_replace_string_string_int string.(string, string, int) -> string
split
    string_split_string string.(string) -> list(string)
    string_split_string_int string.(string, int) -> list(string)
strings.quote
    strings_quote (string) -> string
substring
    string_substring_int string.(int) -> string
    string_substring_int_int string.(int, int) -> string
trim
    string_trim string.() -> string
upperAscii
    string_upper_ascii string.() -> string
""")
