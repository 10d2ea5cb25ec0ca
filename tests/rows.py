"""Create rows of any model from its fields, for tests that cover all tables."""

from __future__ import annotations

import itertools
from typing import Any

from django.db import models
from django.utils import timezone

_NUMBERS = itertools.count(1)


def make(model: type[models.Model], *, with_links: bool = True) -> models.Model:
    """Return a saved row with a value in every field that has no default; each row has parents of its own.

    ``with_links``: those that may be missing are there too, so that a page which shows them needs to read them.
    """
    number = next(_NUMBERS)
    row = model(
        **{field.name: value for field in model._meta.concrete_fields for value in _values(field, number, with_links)}
    )
    row.save(force_insert=True)
    return row


def _values(field: Any, number: int, with_links: bool) -> list[Any]:
    if field.is_relation:
        is_wanted = not field.null or (with_links and field.related_model is not field.model)
        return [make(field.related_model, with_links=False)] if is_wanted else []
    if field.has_default() or field.null or isinstance(field, models.AutoField):
        return []
    if field.choices:
        return [field.choices[0][0]]
    return [next(value for kind, value in _plain(field, number).items() if isinstance(field, kind))]


def _plain(field: Any, number: int) -> dict[type[models.Field[Any, Any]], Any]:
    """Return a value for each kind of field, subclasses first."""
    return {
        models.DateTimeField: timezone.now(),
        models.DateField: timezone.now().date(),
        models.IntegerField: number,
        models.FloatField: float(number),
        models.BinaryField: b"x",
        models.JSONField: {"args": [], "kwargs": {}},  # as tasks have it
        models.SlugField: f"slug-{number}",
        models.CharField: f"{field.name} {number}"[: field.max_length],
        models.TextField: f"{field.name} {number}",
        models.Field: None,
    }
