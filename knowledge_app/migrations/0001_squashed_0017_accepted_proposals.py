"""The tables of a new database."""

import django.db.models.deletion
import django.utils.timezone
import simple_history.models
from django.conf import settings
from django.db import migrations, models

import memoryhub.lib.database.fields
from memoryhub.lib.database.append_only import Protect
from memoryhub.lib.render_once import RenderOnce
from memoryhub.lib.search.operations import CreateSearchIndex


TABLES = [
    migrations.CreateModel(
        name="MemoryRevision",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "document",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="revisions",
                    to="knowledge_app.memorydocument",
                ),
            ),
            ("number", models.PositiveIntegerField()),
            ("content", models.TextField(blank=True)),
            ("content_hash", models.CharField(max_length=64)),
            ("raw", models.BinaryField(blank=True, null=True)),
            (
                "base",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.PROTECT,
                    related_name="+",
                    to="knowledge_app.memoryrevision",
                ),
            ),
            (
                "author_kind",
                models.CharField(
                    choices=[
                        ("person", "Person"),
                        ("agent", "Agent"),
                        ("run", "Run"),
                        ("sync", "Sync"),
                        ("command", "Command"),
                    ],
                    max_length=16,
                ),
            ),
            ("author_name", models.CharField(max_length=200)),
            (
                "run",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.PROTECT,
                    related_name="revisions",
                    to="sessions_app.run",
                ),
            ),
            ("reason", models.TextField()),
            ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            (
                "proposal",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.SET_NULL,
                    related_name="revisions",
                    to="knowledge_app.heldchange",
                ),
            ),
        ],
        options={
            "constraints": [
                models.UniqueConstraint(fields=("document", "number"), name="revision_number_once"),
                models.CheckConstraint(condition=models.Q(("number__gte", 1)), name="revision_counts_from_one"),
            ],
        },
    ),
    migrations.CreateModel(
        name="MemoryDocument",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "workspace",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE, related_name="documents", to="sessions_app.workspace"
                ),
            ),
            ("name", models.CharField(max_length=200)),
            ("path", models.TextField(blank=True, help_text="Relative to the agent's folder.")),
            ("written_at", models.DateTimeField(blank=True, null=True)),
            ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            ("updated_at", models.DateTimeField(default=django.utils.timezone.now)),
            (
                "head",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.PROTECT,
                    related_name="+",
                    to="knowledge_app.memoryrevision",
                ),
            ),
            (
                "synced_revision",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.PROTECT,
                    related_name="+",
                    to="knowledge_app.memoryrevision",
                ),
            ),
            (
                "written_over",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.PROTECT,
                    related_name="+",
                    to="knowledge_app.memoryrevision",
                ),
            ),
            ("separator", models.CharField(blank=True, db_default="", default="", max_length=16)),
            ("char_limit", models.PositiveIntegerField(blank=True, null=True)),
            ("byte_limit", models.PositiveIntegerField(blank=True, null=True)),
            ("line_limit", models.PositiveIntegerField(blank=True, null=True)),
            ("is_instructions", models.BooleanField(db_default=False, default=False)),
            (
                "folder",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.SET_NULL,
                    related_name="documents",
                    to="sessions_app.sourcefolder",
                ),
            ),
        ],
        options={
            "constraints": [models.UniqueConstraint(fields=("workspace", "name"), name="document_name_once")],
        },
    ),
    migrations.CreateModel(
        name="Fact",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "workspace",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE, related_name="facts", to="sessions_app.workspace"
                ),
            ),
            (
                "document",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="facts",
                    to="knowledge_app.memorydocument",
                ),
            ),
            ("section", models.TextField(blank=True)),
            ("category", models.CharField(blank=True, max_length=100)),
            ("text", models.TextField()),
            ("line", models.PositiveIntegerField()),
            ("pinned", models.BooleanField(default=False)),
            ("last_verified_at", models.DateTimeField(blank=True, null=True)),
            ("review_by", models.DateField(blank=True, null=True)),
            (
                "born",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="facts_born",
                    to="knowledge_app.memoryrevision",
                ),
            ),
            (
                "died",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="facts_died",
                    to="knowledge_app.memoryrevision",
                ),
            ),
            ("origins_checked_at", models.DateTimeField(blank=True, null=True)),
            (
                "corrected",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.SET_NULL,
                    related_name="facts_corrected",
                    to="knowledge_app.memoryrevision",
                ),
            ),
            (
                "accepted",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.SET_NULL,
                    related_name="facts_accepted",
                    to="knowledge_app.memoryrevision",
                ),
            ),
        ],
        options={
            "indexes": [
                models.Index(fields=["document", "died", "line"], name="fact_in_order"),
                models.Index(fields=["workspace", "category"], name="fact_by_category"),
            ],
        },
    ),
    migrations.CreateModel(
        name="HistoryEntry",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "workspace",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="history_entries",
                    to="sessions_app.workspace",
                ),
            ),
            (
                "session",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.SET_NULL,
                    related_name="history_entries",
                    to="sessions_app.session",
                ),
            ),
            (
                "run",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.SET_NULL,
                    related_name="history_entries",
                    to="sessions_app.run",
                ),
            ),
            ("position", models.PositiveIntegerField()),
            ("content", models.TextField()),
            ("occurred_at", models.DateTimeField(blank=True, null=True)),
            ("occurred_at_text", models.TextField(blank=True)),
            ("source", models.TextField(blank=True, help_text="The file it was read from.")),
            ("source_hash", models.CharField(max_length=64)),
            ("is_archived", models.BooleanField(default=False)),
            ("extra", memoryhub.lib.database.fields.JSONTextField(blank=True, default=dict)),
            ("withdrawn_at", models.DateTimeField(blank=True, null=True)),
            ("recorded_at", models.DateTimeField(default=django.utils.timezone.now)),
            (
                "version_of",
                models.PositiveIntegerField(
                    blank=True,
                    help_text="The position of the first version, if an edit in the file replaced it.",
                    null=True,
                ),
            ),
        ],
        options={
            "verbose_name_plural": "history entries",
            "indexes": [models.Index(fields=["workspace", "occurred_at"], name="history_by_time")],
            "constraints": [models.UniqueConstraint(fields=("workspace", "position"), name="history_position_once")],
        },
    ),
    migrations.CreateModel(
        name="FactSource",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "fact",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE, related_name="sources", to="knowledge_app.fact"
                ),
            ),
            (
                "run",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="+",
                    to="sessions_app.run",
                ),
            ),
            (
                "entry",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="+",
                    to="sessions_app.entry",
                ),
            ),
            (
                "history_entry",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="+",
                    to="knowledge_app.historyentry",
                ),
            ),
            (
                "kind",
                models.CharField(
                    choices=[
                        ("learned", "Learned"),
                        ("written_by", "Written by"),
                        ("recorded_with", "Recorded with"),
                        ("probably_from", "Probably from"),
                    ],
                    default="learned",
                    max_length=16,
                ),
            ),
            ("score", models.FloatField(blank=True, null=True)),
        ],
        options={
            "constraints": [
                models.CheckConstraint(
                    condition=models.Q(
                        ("run__isnull", False),
                        ("entry__isnull", False),
                        ("history_entry__isnull", False),
                        _connector="OR",
                    ),
                    name="fact_source_names_one",
                ),
                models.CheckConstraint(
                    condition=models.Q(
                        models.Q(("kind", "learned"), ("score", None)),
                        models.Q(("entry__isnull", False), ("kind", "written_by"), ("score", None)),
                        models.Q(("entry", None), ("kind", "recorded_with"), ("score", None)),
                        models.Q(
                            ("entry__isnull", False),
                            ("kind", "probably_from"),
                            ("score__gt", 0),
                            ("score__isnull", False),
                            ("score__lte", 1),
                        ),
                        _connector="OR",
                    ),
                    name="fact_source_kind_fits",
                ),
            ],
        },
    ),
    migrations.CreateModel(
        name="HeldChange",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "workspace",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="held_changes",
                    to="sessions_app.workspace",
                ),
            ),
            (
                "document",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="held_changes",
                    to="knowledge_app.memorydocument",
                ),
            ),
            (
                "run",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="held_changes",
                    to="sessions_app.run",
                ),
            ),
            (
                "base",
                models.ForeignKey(
                    null=True,
                    on_delete=django.db.models.deletion.PROTECT,
                    related_name="+",
                    to="knowledge_app.memoryrevision",
                ),
            ),
            (
                "ours",
                models.ForeignKey(
                    null=True,
                    on_delete=django.db.models.deletion.PROTECT,
                    related_name="+",
                    to="knowledge_app.memoryrevision",
                ),
            ),
            ("proposed", models.TextField(blank=True)),
            ("proposed_hash", models.CharField(max_length=64)),
            ("raw", models.BinaryField(blank=True, null=True)),
            ("flags", memoryhub.lib.database.fields.JSONTextField(blank=True, default=list)),
            ("reason", models.TextField()),
            (
                "author_kind",
                models.CharField(
                    choices=[
                        ("person", "Person"),
                        ("agent", "Agent"),
                        ("run", "Run"),
                        ("sync", "Sync"),
                        ("command", "Command"),
                    ],
                    max_length=16,
                ),
            ),
            ("author_name", models.CharField(max_length=200)),
            (
                "status",
                models.CharField(
                    choices=[
                        ("pending", "Pending"),
                        ("approved", "Approved"),
                        ("rejected", "Rejected"),
                        ("superseded", "Superseded"),
                    ],
                    default="pending",
                    max_length=16,
                ),
            ),
            ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            ("decided_at", models.DateTimeField(blank=True, null=True)),
            (
                "decided_by",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.SET_NULL,
                    related_name="+",
                    to=settings.AUTH_USER_MODEL,
                ),
            ),
            ("decision_reason", models.TextField(blank=True)),
            ("file_restored_at", models.DateTimeField(blank=True, null=True)),
            ("decided_parts", memoryhub.lib.database.fields.JSONTextField(blank=True, default=dict)),
        ],
        options={
            "indexes": [models.Index(fields=["workspace", "status", "-id"], name="held_change_inbox")],
            "constraints": [
                models.UniqueConstraint(
                    condition=models.Q(("status", "pending")),
                    fields=("document", "proposed_hash"),
                    name="held_change_once",
                )
            ],
        },
    ),
    migrations.CreateModel(
        name="KnowledgeEntry",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "workspace",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="knowledge_entries",
                    to="sessions_app.workspace",
                ),
            ),
            ("content_id", models.CharField(max_length=512)),
            ("identity", models.CharField(blank=True, max_length=16)),
            (
                "category",
                models.CharField(
                    choices=[
                        ("user_preference", "User preferences"),
                        ("project_decision", "Project decisions"),
                        ("error_pattern", "Error patterns"),
                        ("system_behavior", "System behaviour"),
                        ("learned_fact", "Learned facts"),
                    ],
                    max_length=32,
                ),
            ),
            ("content", models.TextField()),
            ("source", models.TextField(blank=True)),
            ("tags", memoryhub.lib.database.fields.JSONTextField(blank=True, default=list)),
            ("access_count", models.PositiveIntegerField(default=0)),
            ("accessed_at", models.DateTimeField(blank=True, null=True)),
            ("created_at", models.DateTimeField(blank=True, null=True)),
            ("withdrawn_at", models.DateTimeField(blank=True, null=True)),
            ("withdrawn_reason", models.TextField(blank=True)),
            ("last_verified_at", models.DateTimeField(blank=True, null=True)),
            ("review_by", models.DateField(blank=True, null=True)),
            ("corrected", memoryhub.lib.database.fields.JSONTextField(blank=True, default=dict)),
            ("extra", memoryhub.lib.database.fields.JSONTextField(blank=True, default=dict)),
            ("awaits_file_since", models.DateTimeField(blank=True, null=True)),
            ("updated_at", models.DateTimeField(default=django.utils.timezone.now)),
        ],
        options={
            "verbose_name_plural": "knowledge entries",
            "indexes": [
                models.Index(fields=["workspace", "category", "-access_count", "-id"], name="knowledge_by_category"),
                models.Index(fields=["workspace", "identity"], name="knowledge_by_identity"),
                models.Index(fields=["workspace", "-updated_at"], name="knowledge_latest_change"),
                models.Index(fields=["workspace", "withdrawn_at"], name="knowledge_in_use"),
            ],
            "constraints": [models.UniqueConstraint(fields=("workspace", "content_id"), name="knowledge_id_once")],
        },
    ),
    migrations.CreateModel(
        name="HistoricalKnowledgeEntry",
        fields=[
            ("id", models.BigIntegerField(auto_created=True, blank=True, db_index=True, verbose_name="ID")),
            ("content_id", models.CharField(max_length=512)),
            ("identity", models.CharField(blank=True, max_length=16)),
            (
                "category",
                models.CharField(
                    choices=[
                        ("user_preference", "User preferences"),
                        ("project_decision", "Project decisions"),
                        ("error_pattern", "Error patterns"),
                        ("system_behavior", "System behaviour"),
                        ("learned_fact", "Learned facts"),
                    ],
                    max_length=32,
                ),
            ),
            ("content", models.TextField()),
            ("source", models.TextField(blank=True)),
            ("tags", memoryhub.lib.database.fields.JSONTextField(blank=True, default=list)),
            ("access_count", models.PositiveIntegerField(default=0)),
            ("accessed_at", models.DateTimeField(blank=True, null=True)),
            ("created_at", models.DateTimeField(blank=True, null=True)),
            ("withdrawn_at", models.DateTimeField(blank=True, null=True)),
            ("withdrawn_reason", models.TextField(blank=True)),
            ("last_verified_at", models.DateTimeField(blank=True, null=True)),
            ("review_by", models.DateField(blank=True, null=True)),
            ("corrected", memoryhub.lib.database.fields.JSONTextField(blank=True, default=dict)),
            ("extra", memoryhub.lib.database.fields.JSONTextField(blank=True, default=dict)),
            ("updated_at", models.DateTimeField(default=django.utils.timezone.now)),
            (
                "workspace",
                models.ForeignKey(
                    blank=True,
                    db_constraint=False,
                    null=True,
                    on_delete=django.db.models.deletion.DO_NOTHING,
                    related_name="+",
                    to="sessions_app.workspace",
                ),
            ),
            ("history_id", models.AutoField(primary_key=True, serialize=False)),
            ("history_date", models.DateTimeField(db_index=True)),
            ("history_change_reason", models.TextField(null=True)),
            (
                "history_type",
                models.CharField(choices=[("+", "Created"), ("~", "Changed"), ("-", "Deleted")], max_length=1),
            ),
            (
                "history_user",
                models.ForeignKey(
                    null=True,
                    on_delete=django.db.models.deletion.SET_NULL,
                    related_name="+",
                    to=settings.AUTH_USER_MODEL,
                ),
            ),
        ],
        options={
            "verbose_name": "historical knowledge entry",
            "verbose_name_plural": "historical knowledge entries",
            "ordering": ("-history_date", "-history_id"),
            "get_latest_by": ("history_date", "history_id"),
        },
        bases=(simple_history.models.HistoricalChanges, models.Model),
    ),
    migrations.CreateModel(
        name="Observation",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "workspace",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="observations",
                    to="sessions_app.workspace",
                ),
            ),
            (
                "run",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.SET_NULL,
                    related_name="observations",
                    to="sessions_app.run",
                ),
            ),
            ("uid", models.CharField(max_length=512)),
            (
                "category",
                models.CharField(
                    choices=[("finding", "Findings"), ("insight", "Insights"), ("lesson", "Lessons")], max_length=16
                ),
            ),
            ("content", models.TextField()),
            ("source", models.TextField(blank=True)),
            ("occurred_at", models.DateTimeField(blank=True, null=True)),
            ("occurred_at_text", models.TextField(blank=True)),
            ("withdrawn_at", models.DateTimeField(blank=True, null=True)),
            ("withdrawn_reason", models.TextField(blank=True)),
            ("access_count", models.PositiveIntegerField(default=0)),
            ("accessed_at", models.DateTimeField(blank=True, null=True)),
            ("confirmation_count", models.PositiveIntegerField(default=0)),
            ("last_verified_at", models.DateTimeField(blank=True, null=True)),
            ("review_by", models.DateField(blank=True, null=True)),
            ("corrected", memoryhub.lib.database.fields.JSONTextField(blank=True, default=dict)),
            ("extra", memoryhub.lib.database.fields.JSONTextField(blank=True, default=dict)),
            ("recorded_at", models.DateTimeField(default=django.utils.timezone.now)),
            ("updated_at", models.DateTimeField(default=django.utils.timezone.now)),
        ],
        options={
            "indexes": [
                models.Index(fields=["workspace", "category", "-id"], name="observation_by_category"),
                models.Index(fields=["workspace", "withdrawn_at"], name="observation_in_use"),
            ],
            "constraints": [models.UniqueConstraint(fields=("workspace", "uid"), name="observation_uid_once")],
        },
    ),
    migrations.CreateModel(
        name="HistoricalObservation",
        fields=[
            ("id", models.BigIntegerField(auto_created=True, blank=True, db_index=True, verbose_name="ID")),
            ("uid", models.CharField(max_length=512)),
            (
                "category",
                models.CharField(
                    choices=[("finding", "Findings"), ("insight", "Insights"), ("lesson", "Lessons")], max_length=16
                ),
            ),
            ("content", models.TextField()),
            ("source", models.TextField(blank=True)),
            ("occurred_at", models.DateTimeField(blank=True, null=True)),
            ("occurred_at_text", models.TextField(blank=True)),
            ("withdrawn_at", models.DateTimeField(blank=True, null=True)),
            ("withdrawn_reason", models.TextField(blank=True)),
            ("access_count", models.PositiveIntegerField(default=0)),
            ("accessed_at", models.DateTimeField(blank=True, null=True)),
            ("confirmation_count", models.PositiveIntegerField(default=0)),
            ("last_verified_at", models.DateTimeField(blank=True, null=True)),
            ("review_by", models.DateField(blank=True, null=True)),
            ("corrected", memoryhub.lib.database.fields.JSONTextField(blank=True, default=dict)),
            ("extra", memoryhub.lib.database.fields.JSONTextField(blank=True, default=dict)),
            ("recorded_at", models.DateTimeField(default=django.utils.timezone.now)),
            ("updated_at", models.DateTimeField(default=django.utils.timezone.now)),
            (
                "workspace",
                models.ForeignKey(
                    blank=True,
                    db_constraint=False,
                    null=True,
                    on_delete=django.db.models.deletion.DO_NOTHING,
                    related_name="+",
                    to="sessions_app.workspace",
                ),
            ),
            (
                "run",
                models.ForeignKey(
                    blank=True,
                    db_constraint=False,
                    null=True,
                    on_delete=django.db.models.deletion.DO_NOTHING,
                    related_name="+",
                    to="sessions_app.run",
                ),
            ),
            ("history_id", models.AutoField(primary_key=True, serialize=False)),
            ("history_date", models.DateTimeField(db_index=True)),
            ("history_change_reason", models.TextField(null=True)),
            (
                "history_type",
                models.CharField(choices=[("+", "Created"), ("~", "Changed"), ("-", "Deleted")], max_length=1),
            ),
            (
                "history_user",
                models.ForeignKey(
                    null=True,
                    on_delete=django.db.models.deletion.SET_NULL,
                    related_name="+",
                    to=settings.AUTH_USER_MODEL,
                ),
            ),
        ],
        options={
            "verbose_name": "historical observation",
            "verbose_name_plural": "historical observations",
            "ordering": ("-history_date", "-history_id"),
            "get_latest_by": ("history_date", "history_id"),
        },
        bases=(simple_history.models.HistoricalChanges, models.Model),
    ),
    migrations.CreateModel(
        name="Confirmation",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "workspace",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="confirmations",
                    to="sessions_app.workspace",
                ),
            ),
            (
                "observation",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="confirmations",
                    to="knowledge_app.observation",
                ),
            ),
            (
                "run",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.SET_NULL,
                    related_name="confirmations",
                    to="sessions_app.run",
                ),
            ),
            (
                "category",
                models.CharField(
                    choices=[("finding", "Findings"), ("insight", "Insights"), ("lesson", "Lessons")], max_length=16
                ),
            ),
            ("content", models.TextField()),
            ("source", models.TextField(blank=True)),
            ("similarity", models.FloatField()),
            (
                "status",
                models.CharField(
                    choices=[("offered", "Offered"), ("confirmed", "Confirmed"), ("kept_apart", "Kept Apart")],
                    default="offered",
                    max_length=16,
                ),
            ),
            ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            ("decided_at", models.DateTimeField(blank=True, null=True)),
            ("decided_by", models.CharField(blank=True, max_length=200)),
        ],
        options={
            "indexes": [models.Index(fields=["workspace", "status", "-id"], name="confirmation_offered")],
        },
    ),
    migrations.CreateModel(
        name="KeyValue",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "workspace",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="key_values",
                    to="sessions_app.workspace",
                ),
            ),
            ("key", models.CharField(blank=True, max_length=512)),
            ("value", models.TextField(blank=True)),
            ("is_json", models.BooleanField(default=False)),
            ("is_secret", models.BooleanField(default=False)),
            ("withdrawn_at", models.DateTimeField(blank=True, null=True)),
            ("withdrawn_reason", models.TextField(blank=True)),
            ("corrected", memoryhub.lib.database.fields.JSONTextField(blank=True, default=dict)),
            ("updated_at", models.DateTimeField(default=django.utils.timezone.now)),
        ],
        options={
            "constraints": [models.UniqueConstraint(fields=("workspace", "key"), name="key_once")],
        },
    ),
    migrations.CreateModel(
        name="HistoricalKeyValue",
        fields=[
            ("id", models.BigIntegerField(auto_created=True, blank=True, db_index=True, verbose_name="ID")),
            ("key", models.CharField(blank=True, max_length=512)),
            ("value", models.TextField(blank=True)),
            ("is_json", models.BooleanField(default=False)),
            ("is_secret", models.BooleanField(default=False)),
            ("withdrawn_at", models.DateTimeField(blank=True, null=True)),
            ("withdrawn_reason", models.TextField(blank=True)),
            ("corrected", memoryhub.lib.database.fields.JSONTextField(blank=True, default=dict)),
            ("updated_at", models.DateTimeField(default=django.utils.timezone.now)),
            (
                "workspace",
                models.ForeignKey(
                    blank=True,
                    db_constraint=False,
                    null=True,
                    on_delete=django.db.models.deletion.DO_NOTHING,
                    related_name="+",
                    to="sessions_app.workspace",
                ),
            ),
            ("history_id", models.AutoField(primary_key=True, serialize=False)),
            ("history_date", models.DateTimeField(db_index=True)),
            ("history_change_reason", models.TextField(null=True)),
            (
                "history_type",
                models.CharField(choices=[("+", "Created"), ("~", "Changed"), ("-", "Deleted")], max_length=1),
            ),
            (
                "history_user",
                models.ForeignKey(
                    null=True,
                    on_delete=django.db.models.deletion.SET_NULL,
                    related_name="+",
                    to=settings.AUTH_USER_MODEL,
                ),
            ),
        ],
        options={
            "verbose_name": "historical key value",
            "verbose_name_plural": "historical key values",
            "ordering": ("-history_date", "-history_id"),
            "get_latest_by": ("history_date", "history_id"),
        },
        bases=(simple_history.models.HistoricalChanges, models.Model),
    ),
    migrations.CreateModel(
        name="CachedResponse",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "workspace",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="cached_responses",
                    to="sessions_app.workspace",
                ),
            ),
            ("key", models.CharField(max_length=512)),
            ("model", models.CharField(blank=True, max_length=200)),
            ("response", models.TextField(blank=True)),
            ("preview", models.TextField(blank=True)),
            ("hit_count", models.PositiveIntegerField(default=0)),
            ("extra", memoryhub.lib.database.fields.JSONTextField(blank=True, default=dict)),
            ("created_at", models.DateTimeField(blank=True, null=True)),
            ("accessed_at", models.DateTimeField(blank=True, null=True)),
        ],
        options={
            "indexes": [models.Index(fields=["workspace", "-accessed_at", "-id"], name="cached_response_recent")],
            "constraints": [models.UniqueConstraint(fields=("workspace", "key"), name="cached_response_once")],
        },
    ),
    migrations.CreateModel(
        name="SemanticGraph",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "workspace",
                models.OneToOneField(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="semantic_graph",
                    to="sessions_app.workspace",
                ),
            ),
            ("provider", models.CharField(blank=True, max_length=100)),
            ("model", models.CharField(blank=True, max_length=200)),
            ("base_url", models.TextField(blank=True)),
            ("dimensions", models.PositiveIntegerField(default=0)),
            ("built_at", models.DateTimeField(blank=True, null=True)),
            ("built_at_text", models.TextField(blank=True)),
            ("extra", memoryhub.lib.database.fields.JSONTextField(blank=True, default=dict)),
        ],
    ),
    migrations.CreateModel(
        name="Term",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "workspace",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE, related_name="terms", to="sessions_app.workspace"
                ),
            ),
            ("text", models.CharField(max_length=512)),
            ("embedding", models.BinaryField(default=b"")),
            ("fingerprint", models.CharField(blank=True, max_length=400)),
            ("extra", memoryhub.lib.database.fields.JSONTextField(blank=True, default=dict)),
            ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
        ],
        options={
            "constraints": [models.UniqueConstraint(fields=("workspace", "text"), name="term_once")],
        },
    ),
    migrations.CreateModel(
        name="TermRelation",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "term",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE, related_name="relations", to="knowledge_app.term"
                ),
            ),
            (
                "related",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE, related_name="related_from", to="knowledge_app.term"
                ),
            ),
            ("rank", models.PositiveIntegerField(default=0)),
            ("cosine", models.FloatField(blank=True, null=True)),
            ("pinned", models.BooleanField(default=False)),
            ("is_removed", models.BooleanField(default=False)),
        ],
        options={
            "constraints": [
                models.UniqueConstraint(fields=("term", "related"), name="relation_once"),
                models.CheckConstraint(
                    condition=models.Q(("term", models.F("related")), _negated=True), name="relation_joins_two"
                ),
            ],
        },
    ),
    migrations.CreateModel(
        name="RowVector",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "workspace",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="row_vectors",
                    to="sessions_app.workspace",
                ),
            ),
            ("kind", models.CharField(max_length=16)),
            ("object_id", models.BigIntegerField()),
            ("fingerprint", models.CharField(max_length=400)),
            ("text_hash", models.CharField(max_length=64)),
            ("vector", models.BinaryField()),
        ],
        options={
            "indexes": [models.Index(fields=["workspace", "kind", "id"], name="row_vector_in_order")],
            "constraints": [
                models.UniqueConstraint(fields=("workspace", "kind", "object_id"), name="row_vector_once")
            ],
        },
    ),
    migrations.CreateModel(
        name="EditedRow",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "run",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE, related_name="edited_rows", to="sessions_app.run"
                ),
            ),
            ("table", models.CharField(max_length=32)),
            ("object_id", models.BigIntegerField()),
            ("before", memoryhub.lib.database.fields.JSONTextField(null=True)),
            ("after", memoryhub.lib.database.fields.JSONTextField(null=True)),
        ],
        options={
            "constraints": [models.UniqueConstraint(fields=("run", "table", "object_id"), name="edited_row_once")],
        },
    ),
    migrations.CreateModel(
        name="Concern",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "workspace",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE, related_name="concerns", to="sessions_app.workspace"
                ),
            ),
            (
                "run",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.SET_NULL,
                    related_name="concerns",
                    to="sessions_app.run",
                ),
            ),
            (
                "kind",
                models.CharField(
                    choices=[
                        ("duplicate", "Duplicates"),
                        ("contradiction", "Contradictions"),
                        ("stale", "Stale"),
                        ("order", "Instruction-like"),
                        ("secret", "Secrets"),
                        ("personal", "Personal data"),
                    ],
                    max_length=16,
                ),
            ),
            (
                "status",
                models.CharField(
                    choices=[("open", "Open"), ("dismissed", "Dismissed"), ("settled", "Settled")],
                    default="open",
                    max_length=16,
                ),
            ),
            ("table", models.CharField(max_length=32)),
            ("object_id", models.BigIntegerField()),
            ("other_table", models.CharField(blank=True, max_length=32)),
            ("other_id", models.BigIntegerField(blank=True, null=True)),
            ("what", models.CharField(max_length=200)),
            ("weight", models.FloatField(default=1.0)),
            ("fingerprint", models.CharField(max_length=64)),
            ("found_at", models.DateTimeField(default=django.utils.timezone.now)),
        ],
        options={
            "indexes": [models.Index(fields=["workspace", "status", "kind", "-id"], name="concern_by_kind")],
            "constraints": [models.UniqueConstraint(fields=("workspace", "fingerprint"), name="concern_once")],
        },
    ),
    migrations.CreateModel(
        name="HygieneScore",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "workspace",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="hygiene_scores",
                    to="sessions_app.workspace",
                ),
            ),
            (
                "run",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.SET_NULL,
                    related_name="+",
                    to="sessions_app.run",
                ),
            ),
            ("score", models.FloatField()),
            ("row_count", models.PositiveIntegerField()),
            ("counts", memoryhub.lib.database.fields.JSONTextField(default=dict)),
            ("at", models.DateTimeField(default=django.utils.timezone.now)),
        ],
        options={
            "indexes": [models.Index(fields=["workspace", "-id"], name="hygiene_score_latest")],
        },
    ),
    migrations.CreateModel(
        name="Forgotten",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "workspace",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="forgotten",
                    to="sessions_app.workspace",
                ),
            ),
            (
                "kind",
                models.CharField(
                    choices=[
                        ("phrase", "a phrase"),
                        ("person", "a person"),
                        ("source", "a source"),
                        ("session", "a session"),
                    ],
                    max_length=16,
                ),
            ),
            ("digests", memoryhub.lib.database.fields.JSONTextField(blank=True, default=list)),
            ("counts", memoryhub.lib.database.fields.JSONTextField(default=dict)),
            ("reason", models.TextField(blank=True)),
            ("forgotten_by", models.CharField(max_length=200)),
            ("forgotten_at", models.DateTimeField(default=django.utils.timezone.now)),
            ("lifted_at", models.DateTimeField(blank=True, null=True)),
            ("workspaces", memoryhub.lib.database.fields.JSONTextField(blank=True, default=list)),
            ("files", memoryhub.lib.database.fields.JSONTextField(blank=True, db_default={}, default=dict)),
        ],
        options={
            "verbose_name_plural": "forgotten",
            "indexes": [models.Index(fields=["workspace", "-id"], name="forgotten_latest")],
        },
    ),
    migrations.CreateModel(
        name="HeldRow",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("findings", memoryhub.lib.database.fields.JSONTextField(default=list)),
            (
                "author_kind",
                models.CharField(
                    choices=[
                        ("person", "Person"),
                        ("agent", "Agent"),
                        ("run", "Run"),
                        ("sync", "Sync"),
                        ("command", "Command"),
                    ],
                    max_length=16,
                ),
            ),
            ("author_name", models.CharField(max_length=200)),
            ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            (
                "history_entry",
                models.OneToOneField(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="hold",
                    to="knowledge_app.historyentry",
                ),
            ),
            (
                "key_value",
                models.OneToOneField(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="hold",
                    to="knowledge_app.keyvalue",
                ),
            ),
            (
                "knowledge",
                models.OneToOneField(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="hold",
                    to="knowledge_app.knowledgeentry",
                ),
            ),
            (
                "observation",
                models.OneToOneField(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="hold",
                    to="knowledge_app.observation",
                ),
            ),
            (
                "workspace",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE, related_name="held_rows", to="sessions_app.workspace"
                ),
            ),
        ],
        options={
            "indexes": [models.Index(fields=["workspace", "-id"], name="held_row_inbox")],
            "constraints": [
                models.CheckConstraint(
                    condition=models.Q(
                        ("knowledge__isnull", False),
                        ("observation__isnull", False),
                        ("key_value__isnull", False),
                        ("history_entry__isnull", False),
                        _connector="OR",
                    ),
                    name="held_row_names_one",
                )
            ],
        },
    ),
    migrations.CreateModel(
        name="GraphLayout",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("version", models.PositiveIntegerField()),
            ("revision", models.BigIntegerField()),
            ("message_count", models.PositiveBigIntegerField()),
            ("data", memoryhub.lib.database.fields.JSONTextField(default=dict)),
            ("built_at", models.DateTimeField(default=django.utils.timezone.now)),
            (
                "workspace",
                models.OneToOneField(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="graph_layout",
                    to="sessions_app.workspace",
                ),
            ),
        ],
    ),
]

OF_827A92B = [
    "0002_append_only",
    "0003_curation",
    "0004_fill_curation",
    "0005_search",
    "0006_row_vectors",
    "0007_two_way_sync",
]
SINCE = [
    "0001_initial",
    "0002_search",
    "0003_history_versions",
    "0004_protect_from_replace",
    "0005_restored_files",
    "0006_fact_origins",
    "0007_held_rows",
    "0008_receipts_of_the_hub",
    "0009_search_folding",
    "0010_graph_layout",
    "0011_document_limits",
    "0012_corrected_facts",
    "0013_document_folder",
    "0014_indexes_for_every_page",
    "0015_decided_parts",
    "0016_forgotten_files",
    "0017_accepted_proposals",
]


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("sessions_app", "0001_squashed_0016_digests_of_deleted_sessions"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    replaces = [("knowledge_app", name) for name in [*OF_827A92B, *SINCE]]

    operations = [
        RenderOnce(TABLES),
        Protect("knowledge_app_memoryrevision", free=("proposal_id",)),
        Protect("knowledge_app_historyentry", free=("session_id", "run_id", "withdrawn_at", "is_archived")),
        CreateSearchIndex("knowledge_app_fact", content=["text"], meta=["section", "category"]),
        CreateSearchIndex("knowledge_app_memoryrevision", content=["content"], scope={"d": "document_id"}),
        CreateSearchIndex(
            "knowledge_app_historyentry",
            content=["content"],
            time="occurred_at",
            scope={"w": "workspace_id", "s": "session_id"},
        ),
        CreateSearchIndex(
            "knowledge_app_knowledgeentry",
            content=["content"],
            meta=["category", "source", "tags"],
            json=["tags"],
            time="created_at",
        ),
        CreateSearchIndex(
            "knowledge_app_observation", content=["content"], meta=["category", "source"], time="occurred_at"
        ),
        CreateSearchIndex("knowledge_app_keyvalue", content=["key", "value"], hidden_by={"value": "is_secret"}),
        CreateSearchIndex("knowledge_app_cachedresponse", content=["preview", "response"], meta=["model"]),
    ]
