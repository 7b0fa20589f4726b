"""One call, one pipeline: what becomes of a request, phase by phase, whoever made it."""
