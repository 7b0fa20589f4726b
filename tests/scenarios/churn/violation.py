"""What a check raises."""


class ViolationError(AssertionError):
    """Something that must hold does not."""
