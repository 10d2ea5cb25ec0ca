from __future__ import annotations

from django.apps import apps
from django.db import connection

from memoryhub.lib.search.operations import indexes


def index_names() -> dict[str, str]:
    """Return the names of the tables that have a search index, with their verbose names."""
    labels = {model._meta.db_table: str(model._meta.verbose_name_plural) for model in apps.get_models()}
    return {index.table: labels.get(index.table, index.table) for index in indexes(connection)}
