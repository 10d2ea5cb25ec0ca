"""The semantic graph (terms, embeddings and relations), embeddings of rows, and the cached graph of a memory."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from memoryhub.lib.database.fields import JSONTextField
from sessions_app.models import Workspace
from sessions_app.models.conversations import KEY_LENGTH


class SemanticGraph(models.Model):
    """The model that made a workspace's embeddings. Only embeddings of the same fingerprint are compared."""

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
    """A word of the graph. ``embedding``: little-endian float32, empty if there is none of the fingerprint."""

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
    """A neighbour of ``term``, at position ``rank``; ``is_removed`` excludes it from expansion."""

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


class RowVector(models.Model):
    """The embedding of a row's text for semantic search: a little-endian float32 unit vector, immutable.

    ``kind`` and ``object_id`` identify the row, which may no longer exist. ``text_hash``: the hash of the embedded
    text; the vector is valid only while the row has that text.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="row_vectors")
    kind = models.CharField(max_length=16)
    object_id = models.BigIntegerField()
    fingerprint = models.CharField(max_length=400)
    text_hash = models.CharField(max_length=64)
    vector = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "kind", "object_id"], name="row_vector_once")]
        indexes = [models.Index(fields=["workspace", "kind", "id"], name="row_vector_in_order")]

    def __str__(self) -> str:
        return f"vector of {self.kind} {self.object_id}"


class GraphLayout(models.Model):
    """The computed graph of a workspace's memory: a cache, which can be deleted at any time.

    ``revision``: the newest audit record that it includes; ``message_count``: of the workspace then. ``version``: of
    the code that made it. ``data``: see ``memoryhub.graph.graph_cache``. It contains words of the memory, so every
    erasure deletes it, and backups leave it out.
    """

    workspace = models.OneToOneField(Workspace, on_delete=models.CASCADE, related_name="graph_layout")
    version = models.PositiveIntegerField()
    revision = models.BigIntegerField()
    message_count = models.PositiveBigIntegerField()
    data = JSONTextField(default=dict)
    built_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"graph of {self.workspace_id}"
