"""Backups of the whole hub: made while it runs, checked after writing, restored only where they pass their check."""
