"""Operations on documents by their types: type checks, Go's messages, normal form, and empty fields."""
