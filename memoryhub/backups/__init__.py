"""Back up and restore the whole hub."""
