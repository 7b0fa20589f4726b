"""The plugins that look at nodes, one module each: what they reject, what they prefer, and what can help."""
