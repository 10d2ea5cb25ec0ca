"""Readers and writers of agents' folders."""
