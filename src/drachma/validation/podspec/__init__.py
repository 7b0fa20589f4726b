"""Rules for what a pod runs and where, over documents: one module a concept, all of it in :mod:`.spec`."""
