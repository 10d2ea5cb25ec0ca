"""Adapters for agent frameworks. Each module needs its framework; importing the client imports none of them."""
