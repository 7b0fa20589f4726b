"""The plugins, one module each: their rejections, preferences and hints. They do not know each other."""
