"""Kinds that are questions: a module each says what a create of one is answered with. Nothing of them is stored."""
