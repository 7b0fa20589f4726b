"""Volumes of pods whose containers see files: their content, and how it is written and updated."""
