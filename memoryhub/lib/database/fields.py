"""A model field for JSON that is returned exactly as it was stored."""

from __future__ import annotations

import json
from typing import Any

from django.db import models

EMPTY: dict[str | None, type] = {"{}": dict, "[]": list}


class JSONTextField(models.TextField[Any, Any]):
    """JSON stored as text.

    PostgreSQL's jsonb reorders keys, normalises numbers and rejects values that SQLite accepts. Text keeps them on
    both databases; the hub never queries inside such a column.
    """

    _pyi_private_set_type: Any  # for django-stubs: any JSON value
    _pyi_private_get_type: Any

    def get_prep_value(self, value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    def from_db_value(self, value: str | None, _expression: object, _connection: object) -> Any:
        if value in EMPTY:  # most values
            return EMPTY[value]()
        return None if value is None else json.loads(value)

    def value_to_string(self, obj: models.Model) -> str:
        return self.get_prep_value(self.value_from_object(obj))

    def to_python(self, value: Any) -> Any:
        return value
