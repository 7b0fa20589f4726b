"""What plugins are made of: the extension points, what is passed between them, and the profile that runs them.

The words are those of kube-scheduler's framework. Nothing here knows a plugin.
"""
