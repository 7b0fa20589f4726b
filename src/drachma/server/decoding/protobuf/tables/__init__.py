"""Which number each field has on the wire, package by package."""
