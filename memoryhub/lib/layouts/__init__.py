"""Agents' folders as dataclasses: one module for each layout, no database."""
