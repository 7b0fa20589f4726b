"""The plugin framework: extension points, the values passed between them, and the profile that runs them.

The terms are those of kube-scheduler's framework. Nothing here knows a plugin.
"""
