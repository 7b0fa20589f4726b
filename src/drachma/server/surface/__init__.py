"""The served API: kinds, paths, verbs, discovery and OpenAPI."""
