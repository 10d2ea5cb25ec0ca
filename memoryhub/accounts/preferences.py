"""How a person wants to read the pages: kept with their account."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction

from memoryhub.models import Preferences
from sessions_app.services.audit import By, record


def save_preferences(user: User, *, by: By, **wanted: str) -> Preferences:
    """Keep what a person wants of ``theme``, ``time_zone`` and ``language``; what isn't named stays as it is.

    The values are the form's, which knows what there is. Nothing is written where nothing changes.
    """
    with transaction.atomic():
        kept, _ = Preferences.objects.select_for_update().get_or_create(user=user)
        changed = [name for name, value in wanted.items() if getattr(kept, name) != value]
        if changed:
            for name in changed:
                setattr(kept, name, wanted[name])
            kept.save(update_fields=changed)
            said = ", ".join(name.replace("_", " ") for name in sorted(changed))
            record(by, "preferences.changed", "user", user.pk, f"changed their preferences: {said}")
    return kept
