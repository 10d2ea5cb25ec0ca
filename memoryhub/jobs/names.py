from __future__ import annotations


def import_name(pk: int) -> str:
    """Return the name by which an import is known to be at work, or to have been killed."""
    return f"import-report-{pk}"
