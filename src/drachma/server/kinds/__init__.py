"""One record a kind: what it is called, consists of, looks like in tables, and how it is read, prepared and checked."""
