"""Save display preferences."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction

from memoryhub.models import Preferences
from sessions_app.services.audit import By, record


def save_preferences(user: User, *, by: By, **values: str) -> Preferences:
    """Save the given ones of ``theme``, ``time_zone`` and ``language``, as validated by the form."""
    with transaction.atomic():
        preferences, _ = Preferences.objects.select_for_update().get_or_create(user=user)
        changed = [name for name, value in values.items() if getattr(preferences, name) != value]
        if changed:
            for name in changed:
                setattr(preferences, name, values[name])
            preferences.save(update_fields=changed)
            names = ", ".join(name.replace("_", " ") for name in sorted(changed))
            record(by, "preferences.changed", "user", user.pk, f"changed their preferences: {names}")
    return preferences
