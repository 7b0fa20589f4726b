"""The served API: resources, routes, verbs, discovery and OpenAPI."""
