"""A model field for JSON that must come back as it went in."""

from __future__ import annotations

import json
from typing import Any

from django.db import models


class JSONTextField(models.TextField[Any, Any]):
    """JSON kept as its text, so that both databases return equal values in their own key order.

    PostgreSQL's jsonb reorders keys and normalises numbers, and refuses what SQLite takes. Nothing here is queried
    inside the database, so text loses nothing.
    """

    _pyi_private_set_type: Any  # what django-stubs reads: any JSON value goes in and comes out
    _pyi_private_get_type: Any

    def get_prep_value(self, value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    def from_db_value(self, value: str | None, _expression: object, _connection: object) -> Any:
        return None if value is None else json.loads(value)

    def value_to_string(self, obj: models.Model) -> str:
        return self.get_prep_value(self.value_from_object(obj))

    def to_python(self, value: Any) -> Any:
        return value
