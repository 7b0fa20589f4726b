"""Pages of the dashboard: one module for each part of it."""
