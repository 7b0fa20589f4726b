"""The volumes of pods whose containers see files: what is in them, how it is written, and when anew."""
