"""Streams that tell open pages when something changed."""
