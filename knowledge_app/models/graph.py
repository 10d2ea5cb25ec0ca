"""The semantic graph: terms, their embeddings, and which are related."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from memoryhub.lib.fields import JSONTextField
from sessions_app.models import Workspace
from sessions_app.models.conversations import KEY_LENGTH


class SemanticGraph(models.Model):
    """What made a workspace's embeddings: terms of another fingerprint are never compared with these."""

    workspace = models.OneToOneField(Workspace, on_delete=models.CASCADE, related_name="semantic_graph")
    provider = models.CharField(max_length=100, blank=True)
    model = models.CharField(max_length=200, blank=True)
    base_url = models.TextField(blank=True)
    dimensions = models.PositiveIntegerField(default=0)
    built_at = models.DateTimeField(null=True, blank=True)
    built_at_text = models.TextField(blank=True)
    extra = JSONTextField(default=dict, blank=True)

    def __str__(self) -> str:
        return f"{self.provider} {self.model}"


class Term(models.Model):
    """A word of the graph. ``embedding`` is little-endian float32, empty where none fits the fingerprint."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="terms")
    text = models.CharField(max_length=KEY_LENGTH)
    embedding = models.BinaryField(default=b"")
    fingerprint = models.CharField(max_length=400, blank=True)
    extra = JSONTextField(default=dict, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "text"], name="term_once")]

    def __str__(self) -> str:
        return self.text


class TermRelation(models.Model):
    """``term`` names ``related`` as a neighbour, at place ``rank``; ``is_removed`` hides it from expansion."""

    term = models.ForeignKey(Term, on_delete=models.CASCADE, related_name="relations")
    related = models.ForeignKey(Term, on_delete=models.CASCADE, related_name="related_from")
    rank = models.PositiveIntegerField(default=0)
    cosine = models.FloatField(null=True, blank=True)
    pinned = models.BooleanField(default=False)
    is_removed = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["term", "related"], name="relation_once"),
            models.CheckConstraint(condition=~Q(term=F("related")), name="relation_joins_two"),
        ]

    def __str__(self) -> str:
        return f"{self.term_id} to {self.related_id}"
