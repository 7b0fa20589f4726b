"""The plugins, one module each: what they reject, what they prefer, and what can help. They do not know each other."""
