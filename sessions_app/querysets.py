"""Filters over conversations. ``visible_to`` is the only way from a request to a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import models
from django.db.models import F, Q

if TYPE_CHECKING:
    from sessions_app.models import Entry, Session, Workspace  # noqa: F401  named in quotes below


OWN_CHANNELS = ("dream", "heartbeat", "cron")  # of the sessions in which agents' programs work on their own
OWN_KEY = "heartbeat"  # of one of them, which may have another channel


def of_own_sessions(prefix: str = "") -> Q:
    """Match the sessions that an agent's program started itself: dream:…, heartbeat and cron:…"""
    return Q(**{f"{prefix}channel__in": OWN_CHANNELS}) | Q(**{f"{prefix}key": OWN_KEY})


class WorkspaceQuerySet(models.QuerySet["Workspace"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> Self:
        """Workspaces that a user can read: all for operators of the hub, else those with a membership."""
        if getattr(user, "is_superuser", False):
            return self
        return self.filter(memberships__user_id=user.pk)

    def operated_by(self, user: AbstractBaseUser | AnonymousUser) -> Self:
        """Workspaces of which a user is an operator."""
        if getattr(user, "is_superuser", False):
            return self
        return self.filter(memberships__user_id=user.pk, memberships__role="operator")


class SessionQuerySet(models.QuerySet["Session"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> Self:
        if getattr(user, "is_superuser", False):
            return self
        return self.filter(workspace__memberships__user_id=user.pk)

    def over_limits(self) -> Self:
        """Those of these sessions that are in use and over their workspace's limits of tokens or entries.

        Each limit has an index: every page counts such sessions. ``+ 0`` lets SQLite use that of the sum.
        """
        used = self.filter(archived_at=None).annotate(in_context=F("active_tokens") + F("summary_tokens"))
        over_tokens = used.filter(in_context__gt=F("workspace__max_tokens") + 0).values("pk")
        over_entries = used.filter(active_entry_count__gt=F("workspace__max_entries")).values("pk")
        return type(self)(self.model).filter(pk__in=over_tokens.union(over_entries))


IN_CONVERSATION = Q(is_injected=False, is_rewound=False)
# In the context: of the current epoch, from the pointer on, without a summary.
IS_ACTIVE = IN_CONVERSATION & Q(
    epoch=F("session__epoch"), position__gte=F("session__last_consolidated"), summary__isnull=True
)


class EntryQuerySet(models.QuerySet["Entry"]):
    def in_conversation(self) -> Self:
        """Entries that the agent's program didn't add itself, and that weren't rewound.

        Searches, contexts, runs and everything else that a model reads use only these.
        """
        return self.filter(IN_CONVERSATION)

    def active(self) -> Self:
        """Entries in the context: of the current epoch, from the pointer on, without a summary."""
        return self.filter(IS_ACTIVE)
