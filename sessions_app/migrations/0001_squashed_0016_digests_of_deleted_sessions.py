"""The tables of a new database, with those of the memoryhub app: each app refers to the other's tables."""

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import memoryhub.lib.database.fields
from memoryhub.lib.database.append_only import Protect
from memoryhub.lib.render_once import InApp, RenderOnce
from memoryhub.lib.search.operations import CreateSearchFunctions, CreateSearchIndex


TABLES = [
    migrations.CreateModel(
        name="Workspace",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("slug", models.SlugField(max_length=64, unique=True)),
            ("name", models.CharField(max_length=200)),
            (
                "layout",
                models.CharField(
                    choices=[
                        ("nanobot", "nanobot"),
                        ("grip", "Grip"),
                        ("grid", "grid"),
                        ("agterm", "AgTerm"),
                        ("claude-code", "Claude Code"),
                        ("codex", "Codex"),
                        ("gemini-cli", "Gemini CLI"),
                        ("openclaw", "OpenClaw"),
                        ("opencode", "OpenCode"),
                        ("hermes", "Hermes"),
                        ("server-memory", "server-memory"),
                        ("basic-memory", "basic-memory"),
                        ("memory-bank", "Memory bank"),
                        ("hub", "MemoryHub"),
                    ],
                    default="hub",
                    max_length=16,
                ),
            ),
            ("layout_version", models.CharField(blank=True, max_length=100)),
            ("path", models.TextField(blank=True, help_text="The agent's folder, as the hub sees it.")),
            ("unavailable_since", models.DateTimeField(blank=True, null=True)),
            ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            ("updated_at", models.DateTimeField(default=django.utils.timezone.now)),
            ("memory_window", models.PositiveIntegerField(default=100)),
            (
                "consolidation_style",
                models.CharField(
                    choices=[("nanobot", "nanobot: rewrite MEMORY.md"), ("grip", "Grip: append facts")],
                    default="nanobot",
                    max_length=16,
                ),
            ),
            ("auto_consolidate", models.BooleanField(default=True)),
            ("max_tokens", models.PositiveIntegerField(default=50000)),
            ("max_entries", models.PositiveIntegerField(default=100)),
            ("recent_window", models.PositiveIntegerField(default=10)),
            ("min_entries_to_compress", models.PositiveIntegerField(default=5)),
            ("compression_ratio", models.FloatField(default=0.3)),
            ("auto_compress", models.BooleanField(default=True)),
            ("model", models.CharField(blank=True, max_length=200)),
            ("model_base_url", models.CharField(blank=True, max_length=500)),
            ("consolidation_model", models.CharField(blank=True, max_length=200)),
            ("extraction_model", models.CharField(blank=True, max_length=200)),
            ("auto_extract", models.BooleanField(default=False)),
            ("embedding_provider", models.CharField(blank=True, max_length=32)),
            ("embedding_model", models.CharField(blank=True, max_length=200)),
            ("embedding_base_url", models.CharField(blank=True, max_length=500)),
            ("dense_search", models.BooleanField(default=False)),
            ("stale_days", models.PositiveIntegerField(default=180)),
            ("cache_hit_count", models.PositiveBigIntegerField(default=0)),
            ("cache_miss_count", models.PositiveBigIntegerField(default=0)),
            ("is_followed", models.BooleanField(default=False)),
            ("write_back", models.BooleanField(default=False)),
            ("recency_decay", models.FloatField(default=0.0, help_text="Per hour; Grip's own rate is 0.001.")),
            ("daily_token_budget", models.PositiveIntegerField(blank=True, null=True)),
            ("persist_memory", models.BooleanField(default=True)),
            ("cache_enabled", models.BooleanField(default=True)),
            ("cache_ttl_seconds", models.PositiveIntegerField(default=3600)),
            ("cache_max_entries", models.PositiveIntegerField(default=500)),
            ("knowledge_in_context", models.BooleanField(default=False)),
            ("summary_prompt", models.TextField(blank=True, default="", max_length=4000)),
            (
                "agent_changes",
                models.CharField(
                    choices=[
                        ("accept", "Accept and list"),
                        ("hold_risky", "Hold risky changes"),
                        ("hold_all", "Hold all changes"),
                    ],
                    default="hold_risky",
                    max_length=16,
                ),
            ),
            ("project", models.TextField(blank=True, db_default="", default="")),
            ("instructions_path", models.TextField(blank=True, db_default="", default="")),
            ("write_instructions", models.BooleanField(db_default=False, default=False)),
        ],
        options={
            "constraints": [
                models.CheckConstraint(
                    condition=models.Q(("recent_window__lte", models.F("max_entries"))),
                    name="workspace_recent_window_fits",
                ),
                models.CheckConstraint(
                    condition=models.Q(("compression_ratio__gt", 0), ("compression_ratio__lt", 1)),
                    name="workspace_ratio_is_a_share",
                ),
                models.CheckConstraint(
                    condition=models.Q(("recency_decay__gte", 0)), name="workspace_decay_not_negative"
                ),
                models.CheckConstraint(
                    condition=models.Q(
                        ("is_followed", False), models.Q(("path", ""), _negated=True), _connector="OR"
                    ),
                    name="workspace_followed_has_folder",
                ),
                models.UniqueConstraint(
                    condition=models.Q(("path", ""), _negated=True),
                    fields=("path", "project"),
                    name="workspace_one_per_folder",
                ),
                models.CheckConstraint(
                    condition=models.Q(("write_back", False), models.Q(("path", ""), _negated=True), _connector="OR"),
                    name="workspace_written_back_fits",
                ),
            ],
        },
    ),
    migrations.CreateModel(
        name="Membership",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "workspace",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="memberships",
                    to="sessions_app.workspace",
                ),
            ),
            (
                "user",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="memberships",
                    to=settings.AUTH_USER_MODEL,
                ),
            ),
            (
                "role",
                models.CharField(
                    choices=[("operator", "Operator"), ("editor", "Editor"), ("viewer", "Viewer")], max_length=16
                ),
            ),
        ],
        options={
            "constraints": [models.UniqueConstraint(fields=("workspace", "user"), name="membership_once")],
        },
    ),
    migrations.CreateModel(
        name="Session",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "workspace",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE, related_name="sessions", to="sessions_app.workspace"
                ),
            ),
            ("key", models.CharField(max_length=512)),
            ("channel", models.CharField(max_length=512)),
            ("title", models.TextField(blank=True)),
            ("summary_text", models.TextField(blank=True)),
            ("epoch", models.PositiveIntegerField(default=0)),
            ("last_consolidated", models.PositiveIntegerField(default=0)),
            ("next_position", models.PositiveIntegerField(default=0)),
            ("entry_count", models.PositiveIntegerField(default=0)),
            ("active_entry_count", models.PositiveIntegerField(default=0)),
            ("total_tokens", models.PositiveBigIntegerField(default=0)),
            ("active_tokens", models.PositiveBigIntegerField(default=0)),
            ("summary_tokens", models.PositiveBigIntegerField(default=0)),
            ("is_visible_to_agent", models.BooleanField(default=True)),
            ("note", models.TextField(blank=True)),
            ("extra", memoryhub.lib.database.fields.JSONTextField(blank=True, default=dict)),
            ("archived_at", models.DateTimeField(blank=True, null=True)),
            ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            ("updated_at", models.DateTimeField(default=django.utils.timezone.now)),
            (
                "parent",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.SET_NULL,
                    related_name="subagents",
                    to="sessions_app.session",
                ),
            ),
            ("parent_call_id", models.CharField(blank=True, db_default="", default="", max_length=512)),
            (
                "forked_from",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.SET_NULL,
                    related_name="forks",
                    to="sessions_app.session",
                ),
            ),
            ("missing_since", models.DateTimeField(blank=True, null=True)),
        ],
        options={
            "indexes": [
                models.Index(fields=["workspace", "-updated_at", "-id"], name="session_recent"),
                models.Index(fields=["workspace", "-entry_count", "-id"], name="session_longest"),
                models.Index(fields=["workspace", "-total_tokens", "-id"], name="session_heaviest"),
                models.Index(fields=["workspace", "channel", "-updated_at", "-id"], name="session_by_channel"),
                models.Index(fields=["workspace", "archived_at"], name="session_in_use"),
                models.Index(
                    models.F("workspace"),
                    models.F("active_tokens") + models.F("summary_tokens"),
                    condition=models.Q(("archived_at", None)),
                    name="session_by_context",
                ),
                models.Index(
                    condition=models.Q(("archived_at", None)),
                    fields=["workspace", "active_entry_count"],
                    name="session_by_active_entries",
                ),
            ],
            "constraints": [
                models.UniqueConstraint(fields=("workspace", "key"), name="session_key_once"),
                models.CheckConstraint(
                    condition=models.Q(("active_entry_count__lte", models.F("entry_count"))),
                    name="session_active_within_all",
                ),
                models.CheckConstraint(
                    condition=models.Q(("last_consolidated__lte", models.F("entry_count"))),
                    name="session_pointer_in_range",
                ),
                models.CheckConstraint(
                    condition=models.Q(("next_position__lte", models.F("entry_count"))),
                    name="session_epoch_within_all",
                ),
            ],
        },
    ),
    migrations.CreateModel(
        name="Run",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "workspace",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE, related_name="runs", to="sessions_app.workspace"
                ),
            ),
            (
                "session",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="runs",
                    to="sessions_app.session",
                ),
            ),
            (
                "kind",
                models.CharField(
                    choices=[
                        ("consolidation", "Consolidation"),
                        ("compression", "Compression"),
                        ("compaction", "Compaction"),
                        ("extraction", "Extraction"),
                        ("embedding", "Embedding"),
                        ("edit", "Edit"),
                        ("scan", "Scan"),
                    ],
                    max_length=16,
                ),
            ),
            (
                "status",
                models.CharField(
                    choices=[
                        ("queued", "Queued"),
                        ("running", "Running"),
                        ("done", "Done"),
                        ("held", "Held"),
                        ("failed", "Failed"),
                        ("parked", "Parked"),
                        ("cancelled", "Cancelled"),
                        ("undone", "Undone"),
                    ],
                    default="queued",
                    max_length=16,
                ),
            ),
            ("origin", models.CharField(choices=[("hub", "Hub"), ("agent", "Agent")], default="hub", max_length=8)),
            ("epoch", models.PositiveIntegerField(default=0)),
            ("from_position", models.PositiveIntegerField(default=0)),
            ("to_position", models.PositiveIntegerField(default=0)),
            ("base_revision_number", models.PositiveIntegerField(blank=True, null=True)),
            ("base_hash", models.CharField(blank=True, max_length=64)),
            ("options", memoryhub.lib.database.fields.JSONTextField(blank=True, default=dict)),
            ("not_before", models.DateTimeField(default=django.utils.timezone.now)),
            ("stage", models.CharField(blank=True, max_length=200)),
            ("steps_done", models.PositiveIntegerField(default=0)),
            ("steps_total", models.PositiveIntegerField(default=0)),
            ("lease_owner", models.CharField(blank=True, max_length=100)),
            ("lease_expires_at", models.DateTimeField(blank=True, null=True)),
            ("fencing_number", models.PositiveBigIntegerField(default=0)),
            ("attempt_count", models.PositiveIntegerField(default=0)),
            ("model", models.CharField(blank=True, max_length=200)),
            ("prompt_tokens", models.PositiveBigIntegerField(default=0)),
            ("completion_tokens", models.PositiveBigIntegerField(default=0)),
            ("cost", models.DecimalField(blank=True, decimal_places=6, max_digits=12, null=True)),
            ("requested_by", models.CharField(blank=True, max_length=200)),
            ("error_code", models.CharField(blank=True, max_length=64)),
            ("error", models.TextField(blank=True)),
            ("proposal", memoryhub.lib.database.fields.JSONTextField(blank=True, default=dict)),
            ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            ("started_at", models.DateTimeField(blank=True, null=True)),
            ("finished_at", models.DateTimeField(blank=True, null=True)),
        ],
        options={
            "indexes": [
                models.Index(fields=["workspace", "-id"], name="run_latest"),
                models.Index(fields=["session", "kind", "epoch", "from_position"], name="run_by_place"),
                models.Index(
                    condition=models.Q(("status__in", ("queued", "running"))),
                    fields=["status", "not_before"],
                    name="run_live",
                ),
                models.Index(fields=["workspace", "status"], name="run_by_status"),
            ],
            "constraints": [
                models.CheckConstraint(
                    condition=models.Q(("from_position__lte", models.F("to_position"))), name="run_range_in_order"
                ),
                models.UniqueConstraint(
                    condition=models.Q(("status", "running")), fields=("session",), name="run_one_running_per_session"
                ),
                models.UniqueConstraint(
                    condition=models.Q(("status", "queued")),
                    fields=("session", "kind"),
                    name="run_one_queued_per_kind",
                ),
                models.UniqueConstraint(
                    condition=models.Q(
                        ("kind__in", ["embedding", "scan"]), ("session__isnull", True), ("status", "queued")
                    ),
                    fields=("workspace", "kind"),
                    name="run_one_queued_per_workspace",
                ),
            ],
        },
    ),
    migrations.CreateModel(
        name="Summary",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "workspace",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE, related_name="summaries", to="sessions_app.workspace"
                ),
            ),
            (
                "session",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE, related_name="summaries", to="sessions_app.session"
                ),
            ),
            (
                "parent",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.SET_NULL,
                    related_name="children",
                    to="sessions_app.summary",
                ),
            ),
            ("epoch", models.PositiveIntegerField(default=0)),
            ("content", models.TextField()),
            (
                "method",
                models.CharField(
                    choices=[("llm", "by a model"), ("heuristic", "heuristic"), ("imported", "imported")],
                    max_length=16,
                ),
            ),
            ("model", models.CharField(blank=True, max_length=200)),
            ("token_count", models.PositiveIntegerField()),
            ("original_token_count", models.PositiveBigIntegerField()),
            ("entry_count", models.PositiveIntegerField()),
            ("first_position", models.PositiveIntegerField()),
            ("last_position", models.PositiveIntegerField()),
            ("starts_at", models.DateTimeField(blank=True, null=True)),
            ("ends_at", models.DateTimeField(blank=True, null=True)),
            ("source_id", models.CharField(blank=True, max_length=512)),
            (
                "run",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.SET_NULL,
                    related_name="summaries",
                    to="sessions_app.run",
                ),
            ),
            ("extra", memoryhub.lib.database.fields.JSONTextField(blank=True, default=dict)),
            ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
        ],
        options={
            "verbose_name_plural": "summaries",
            "indexes": [models.Index(fields=["session", "epoch", "first_position"], name="summary_by_place")],
            "constraints": [
                models.CheckConstraint(
                    condition=models.Q(("first_position__lte", models.F("last_position"))),
                    name="summary_range_in_order",
                )
            ],
        },
    ),
    migrations.CreateModel(
        name="Entry",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "workspace",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE, related_name="entries", to="sessions_app.workspace"
                ),
            ),
            (
                "session",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE, related_name="entries", to="sessions_app.session"
                ),
            ),
            ("epoch", models.PositiveIntegerField(default=0)),
            ("position", models.PositiveIntegerField()),
            (
                "kind",
                models.CharField(
                    choices=[
                        ("message", "message"),
                        ("tool_call", "tool call"),
                        ("tool_result", "tool result"),
                        ("context", "context"),
                        ("summary", "summary"),
                    ],
                    max_length=16,
                ),
            ),
            ("role", models.CharField(max_length=32)),
            ("content", models.TextField(blank=True)),
            ("name", models.TextField(blank=True)),
            ("tool_call_id", models.CharField(blank=True, max_length=512)),
            ("tool_calls", memoryhub.lib.database.fields.JSONTextField(blank=True, default=list)),
            ("token_count", models.PositiveIntegerField()),
            ("token_method", models.CharField(default="estimate", max_length=24)),
            ("occurred_at", models.DateTimeField(blank=True, null=True)),
            ("occurred_at_text", models.TextField(blank=True)),
            ("source_id", models.CharField(blank=True, max_length=512)),
            ("source_hash", models.CharField(max_length=64)),
            ("source_fields", memoryhub.lib.database.fields.JSONTextField(blank=True, default=list)),
            ("extra", memoryhub.lib.database.fields.JSONTextField(blank=True, default=dict)),
            (
                "summary",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.PROTECT,
                    related_name="entries",
                    to="sessions_app.summary",
                ),
            ),
            ("recorded_at", models.DateTimeField(default=django.utils.timezone.now)),
            ("is_injected", models.BooleanField(db_default=False, default=False)),
            ("is_rewound", models.BooleanField(db_default=False, default=False)),
        ],
        options={
            "verbose_name_plural": "entries",
            "indexes": [
                models.Index(fields=["workspace", "-id"], name="entry_latest"),
                models.Index(fields=["workspace", "occurred_at"], name="entry_by_time"),
                models.Index(
                    condition=models.Q(("tool_call_id", ""), _negated=True),
                    fields=["session", "tool_call_id"],
                    name="entry_tool_result",
                ),
                models.Index(
                    condition=models.Q(("source_id", ""), _negated=True),
                    fields=["workspace", "source_id"],
                    name="entry_by_source_id",
                ),
            ],
            "constraints": [
                models.UniqueConstraint(fields=("session", "epoch", "position"), name="entry_position_once"),
                models.CheckConstraint(
                    condition=models.Q(("kind__in", ["message", "tool_call", "tool_result", "context", "summary"])),
                    name="entry_kind_known",
                ),
            ],
        },
    ),
    migrations.CreateModel(
        name="AppendReceipt",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "session",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="append_receipts",
                    to="sessions_app.session",
                ),
            ),
            ("idempotency_key", models.CharField(max_length=200)),
            ("body_hash", models.CharField(max_length=64)),
            ("epoch", models.PositiveIntegerField()),
            ("first_position", models.PositiveIntegerField()),
            ("entry_count", models.PositiveIntegerField()),
            ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
        ],
        options={
            "constraints": [
                models.UniqueConstraint(fields=("session", "idempotency_key"), name="append_receipt_key_once")
            ],
        },
    ),
    migrations.CreateModel(
        name="DeletedSession",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "workspace",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="deleted_sessions",
                    to="sessions_app.workspace",
                ),
            ),
            ("key", models.CharField(max_length=512)),
            ("is_forgotten", models.BooleanField(default=False)),
            ("entry_count", models.PositiveIntegerField()),
            ("summary_count", models.PositiveIntegerField()),
            ("total_tokens", models.PositiveBigIntegerField()),
            ("content_hash", models.CharField(max_length=64)),
            ("deleted_by", models.CharField(max_length=200)),
            ("reason", models.TextField(blank=True)),
            ("deleted_at", models.DateTimeField(default=django.utils.timezone.now)),
            ("digests", models.BinaryField(default=b"")),
        ],
        options={
            "constraints": [models.UniqueConstraint(fields=("workspace", "key"), name="deleted_session_key_once")],
        },
    ),
    migrations.CreateModel(
        name="DailyTotal",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "workspace",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="daily_totals",
                    to="sessions_app.workspace",
                ),
            ),
            (
                "session",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="daily_totals",
                    to="sessions_app.session",
                ),
            ),
            ("day", models.DateField()),
            (
                "kind",
                models.CharField(
                    choices=[
                        ("message", "message"),
                        ("tool_call", "tool call"),
                        ("tool_result", "tool result"),
                        ("context", "context"),
                        ("summary", "summary"),
                    ],
                    max_length=16,
                ),
            ),
            ("entry_count", models.PositiveIntegerField()),
            ("token_count", models.PositiveBigIntegerField()),
            ("active_token_count", models.PositiveBigIntegerField()),
            ("part", models.PositiveSmallIntegerField(db_default=0, default=0)),
        ],
        options={
            "constraints": [
                models.UniqueConstraint(
                    condition=models.Q(("session__isnull", False)),
                    fields=("session", "day", "kind"),
                    name="daily_session_once",
                ),
                models.CheckConstraint(
                    condition=models.Q(("active_token_count__lte", models.F("token_count"))),
                    name="daily_active_within_all",
                ),
                models.UniqueConstraint(
                    condition=models.Q(("session__isnull", True)),
                    fields=("workspace", "day", "kind", "part"),
                    name="daily_workspace_part_once",
                ),
            ],
        },
    ),
    migrations.CreateModel(
        name="AuditSeal",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("record_count", models.PositiveIntegerField()),
            ("mac", models.CharField(max_length=64)),
            ("key_check", models.CharField(max_length=8)),
            ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
        ],
    ),
    migrations.CreateModel(
        name="AuditRecord",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "workspace",
                models.ForeignKey(
                    db_constraint=False,
                    null=True,
                    on_delete=django.db.models.deletion.DO_NOTHING,
                    related_name="audit_records",
                    to="sessions_app.workspace",
                ),
            ),
            (
                "actor_kind",
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
            ("actor_name", models.CharField(max_length=200)),
            (
                "session",
                models.ForeignKey(
                    db_constraint=False,
                    null=True,
                    on_delete=django.db.models.deletion.DO_NOTHING,
                    related_name="+",
                    to="sessions_app.session",
                ),
            ),
            ("action", models.CharField(max_length=64)),
            ("object_kind", models.CharField(max_length=32)),
            ("object_id", models.CharField(max_length=64)),
            ("text", models.TextField()),
            ("before_hash", models.CharField(blank=True, max_length=64)),
            ("after_hash", models.CharField(blank=True, max_length=64)),
            ("detail", memoryhub.lib.database.fields.JSONTextField(blank=True, default=dict)),
            ("at", models.DateTimeField(default=django.utils.timezone.now)),
            ("mac", models.CharField(blank=True, max_length=64)),
            (
                "seal",
                models.ForeignKey(
                    db_constraint=False,
                    db_index=False,
                    null=True,
                    on_delete=django.db.models.deletion.DO_NOTHING,
                    related_name="records",
                    to="sessions_app.auditseal",
                ),
            ),
        ],
        options={
            "indexes": [
                models.Index(fields=["workspace", "-id"], name="audit_latest"),
                models.Index(
                    condition=models.Q(("session__isnull", False)), fields=["session", "-id"], name="audit_of_session"
                ),
                models.Index(fields=["object_kind", "object_id"], name="audit_of_object"),
                models.Index(fields=["seal", "id"], name="audit_of_seal"),
            ],
        },
    ),
    migrations.CreateModel(
        name="MutationGuard",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("reason", models.TextField()),
            ("opened_at", models.DateTimeField(default=django.utils.timezone.now)),
        ],
    ),
    migrations.CreateModel(
        name="IndexGuard",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("indexed_table", models.CharField(max_length=64)),
            ("last_id", models.BigIntegerField(default=0)),
        ],
    ),
    migrations.CreateModel(
        name="SourceFile",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "workspace",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="source_files",
                    to="sessions_app.workspace",
                ),
            ),
            ("path", models.TextField()),
            ("path_hash", models.CharField(max_length=64)),
            ("kind", models.CharField(max_length=16)),
            (
                "status",
                models.CharField(
                    choices=[
                        ("read", "read"),
                        ("problems", "read with problems"),
                        ("held", "held"),
                        ("rejected", "not readable"),
                        ("missing", "missing"),
                    ],
                    max_length=16,
                ),
            ),
            (
                "session",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="source_files",
                    to="sessions_app.session",
                ),
            ),
            ("epoch", models.PositiveIntegerField(default=0)),
            ("size", models.PositiveBigIntegerField(default=0)),
            ("mtime_ns", models.BigIntegerField(default=0)),
            ("content_hash", models.CharField(blank=True, max_length=64)),
            ("stamp", models.CharField(blank=True, max_length=100)),
            ("note", models.TextField(blank=True)),
            ("extra", memoryhub.lib.database.fields.JSONTextField(blank=True, default=dict)),
            ("first_seen_at", models.DateTimeField(default=django.utils.timezone.now)),
            ("last_seen_at", models.DateTimeField(default=django.utils.timezone.now)),
            (
                "folder",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.SET_NULL,
                    related_name="files",
                    to="sessions_app.sourcefolder",
                ),
            ),
        ],
        options={
            "constraints": [models.UniqueConstraint(fields=("workspace", "path_hash"), name="source_file_once")],
        },
    ),
    migrations.CreateModel(
        name="SourceFolder",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("label", models.CharField(max_length=64)),
            ("path", models.TextField()),
            ("project", models.TextField(blank=True, default="")),
            (
                "layout",
                models.CharField(
                    choices=[
                        ("nanobot", "nanobot"),
                        ("grip", "Grip"),
                        ("grid", "grid"),
                        ("agterm", "AgTerm"),
                        ("claude-code", "Claude Code"),
                        ("codex", "Codex"),
                        ("gemini-cli", "Gemini CLI"),
                        ("openclaw", "OpenClaw"),
                        ("opencode", "OpenCode"),
                        ("hermes", "Hermes"),
                        ("server-memory", "server-memory"),
                        ("basic-memory", "basic-memory"),
                        ("memory-bank", "Memory bank"),
                        ("hub", "MemoryHub"),
                    ],
                    max_length=16,
                ),
            ),
            ("layout_version", models.CharField(blank=True, max_length=100)),
            ("instructions_path", models.TextField(blank=True, default="")),
            ("is_followed", models.BooleanField(default=False)),
            ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            ("removed_at", models.DateTimeField(blank=True, null=True)),
            ("succeeded_at", models.DateTimeField(blank=True, null=True)),
            ("changed_at", models.DateTimeField(blank=True, null=True)),
            ("failed_at", models.DateTimeField(blank=True, null=True)),
            ("error_code", models.CharField(blank=True, max_length=64)),
            ("error", models.TextField(blank=True)),
            (
                "workspace",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="source_folders",
                    to="sessions_app.workspace",
                ),
            ),
        ],
        options={
            "constraints": [
                models.UniqueConstraint(fields=("workspace", "label"), name="source_folder_label_once"),
                models.UniqueConstraint(fields=("workspace", "path", "project"), name="source_folder_once"),
                models.CheckConstraint(
                    condition=models.Q(
                        ("failed_at", None), models.Q(("error_code", ""), _negated=True), _connector="OR"
                    ),
                    name="source_folder_failure_has_code",
                ),
            ],
        },
    ),
    migrations.CreateModel(
        name="ImportReport",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "workspace",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="import_reports",
                    to="sessions_app.workspace",
                ),
            ),
            (
                "requested_by",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.SET_NULL,
                    related_name="+",
                    to=settings.AUTH_USER_MODEL,
                ),
            ),
            ("path", models.TextField()),
            ("name", models.CharField(blank=True, max_length=200)),
            ("wanted_layout", models.CharField(default="auto", max_length=16)),
            ("layout", models.CharField(blank=True, max_length=16)),
            ("layout_version", models.CharField(blank=True, max_length=100)),
            (
                "status",
                models.CharField(
                    blank=True,
                    choices=[("done", "Done"), ("failed", "Failed"), ("cancelled", "Cancelled")],
                    max_length=16,
                ),
            ),
            ("file_count", models.PositiveIntegerField(default=0)),
            ("files_done", models.PositiveIntegerField(default=0)),
            ("added", memoryhub.lib.database.fields.JSONTextField(blank=True, default=dict)),
            ("updated", memoryhub.lib.database.fields.JSONTextField(blank=True, default=dict)),
            ("unchanged", memoryhub.lib.database.fields.JSONTextField(blank=True, default=dict)),
            ("problem_count", models.PositiveIntegerField(default=0)),
            ("error_code", models.CharField(blank=True, max_length=64)),
            ("error", models.TextField(blank=True)),
            ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            ("finished_at", models.DateTimeField(blank=True, null=True)),
            (
                "job",
                models.OneToOneField(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.SET_NULL,
                    related_name="import_report",
                    to="memoryhub.job",
                ),
            ),
            ("dismissed_at", models.DateTimeField(blank=True, null=True)),
            ("project", models.TextField(blank=True, db_default="", default="")),
        ],
        options={
            "indexes": [models.Index(fields=["workspace", "-id"], name="import_latest")],
        },
    ),
    migrations.CreateModel(
        name="ImportProblem",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "report",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="problems",
                    to="sessions_app.importreport",
                ),
            ),
            ("file", models.TextField()),
            ("line", models.PositiveIntegerField(blank=True, null=True)),
            ("what", models.TextField()),
            ("action", models.TextField()),
            ("outcome", models.CharField(max_length=16)),
            ("raw", models.BinaryField(default=b"")),
        ],
    ),
    migrations.CreateModel(
        name="SyncState",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "workspace",
                models.OneToOneField(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="sync_state",
                    to="sessions_app.workspace",
                ),
            ),
            ("started_at", models.DateTimeField(blank=True, null=True)),
            ("succeeded_at", models.DateTimeField(blank=True, null=True)),
            ("changed_at", models.DateTimeField(blank=True, null=True)),
            ("failed_at", models.DateTimeField(blank=True, null=True)),
            ("error_code", models.CharField(blank=True, max_length=64)),
            ("error", models.TextField(blank=True)),
            ("lag_seconds", models.FloatField(blank=True, null=True)),
            ("counts", memoryhub.lib.database.fields.JSONTextField(blank=True, default=dict)),
            ("unwritten", memoryhub.lib.database.fields.JSONTextField(blank=True, default=dict)),
            ("knowledge_mark", models.CharField(blank=True, max_length=100)),
        ],
        options={
            "constraints": [
                models.CheckConstraint(
                    condition=models.Q(("lag_seconds", None), ("lag_seconds__gte", 0), _connector="OR"),
                    name="sync_lag_not_negative",
                ),
                models.CheckConstraint(
                    condition=models.Q(
                        ("failed_at", None), models.Q(("error_code", ""), _negated=True), _connector="OR"
                    ),
                    name="sync_failure_has_a_code",
                ),
            ],
        },
    ),
    migrations.CreateModel(
        name="Webhook",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "workspace",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE, related_name="webhooks", to="sessions_app.workspace"
                ),
            ),
            ("url", models.CharField(max_length=500)),
            ("actions", memoryhub.lib.database.fields.JSONTextField(default=list)),
            ("salt", models.CharField(max_length=64)),
            ("is_enabled", models.BooleanField(default=True)),
            ("created_by", models.CharField(max_length=200)),
            ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
        ],
        options={
            "constraints": [models.UniqueConstraint(fields=("workspace", "url"), name="webhook_url_once")],
        },
    ),
    migrations.CreateModel(
        name="WebhookDelivery",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "webhook",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE, related_name="deliveries", to="sessions_app.webhook"
                ),
            ),
            (
                "record",
                models.ForeignKey(
                    db_constraint=False,
                    on_delete=django.db.models.deletion.DO_NOTHING,
                    related_name="+",
                    to="sessions_app.auditrecord",
                ),
            ),
            ("status", models.CharField(blank=True, choices=[("sent", "Sent"), ("failed", "Failed")], max_length=16)),
            ("attempt_count", models.PositiveIntegerField(default=0)),
            ("response_status", models.PositiveIntegerField(blank=True, null=True)),
            ("error", models.TextField(blank=True)),
            ("sent_at", models.DateTimeField(blank=True, null=True)),
            (
                "job",
                models.OneToOneField(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.SET_NULL,
                    related_name="webhook_delivery",
                    to="memoryhub.job",
                ),
            ),
            ("tried_at", models.DateTimeField(blank=True, null=True)),
        ],
        options={
            "verbose_name_plural": "webhook deliveries",
            "indexes": [models.Index(fields=["webhook", "-id"], name="webhook_delivery_latest")],
            "constraints": [models.UniqueConstraint(fields=("webhook", "record"), name="webhook_delivery_once")],
        },
    ),
]

HUB_TABLES = [
    migrations.CreateModel(
        name="Job",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "workspace",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="jobs",
                    to="sessions_app.workspace",
                ),
            ),
            (
                "kind",
                models.CharField(
                    choices=[
                        ("export", "Export"),
                        ("compression", "Compression"),
                        ("rebuild", "Rebuild"),
                        ("import", "Import"),
                        ("sync", "Sync"),
                        ("backup", "Backup"),
                        ("backup_check", "Check of a backup"),
                        ("webhook", "Webhook delivery"),
                        ("sweep", "Sweep"),
                        ("pruning", "Pruning"),
                        ("erasure", "Erasure"),
                        ("demo", "Demo"),
                    ],
                    max_length=16,
                ),
            ),
            (
                "status",
                models.CharField(
                    choices=[
                        ("queued", "Queued"),
                        ("running", "Running"),
                        ("done", "Done"),
                        ("failed", "Failed"),
                        ("cancelled", "Cancelled"),
                    ],
                    default="queued",
                    max_length=16,
                ),
            ),
            ("requested_by", models.CharField(max_length=200)),
            ("options", memoryhub.lib.database.fields.JSONTextField(blank=True, default=dict)),
            ("stage", models.CharField(blank=True, max_length=200)),
            ("steps_done", models.PositiveIntegerField(default=0)),
            ("steps_total", models.PositiveIntegerField(default=0)),
            ("result", memoryhub.lib.database.fields.JSONTextField(blank=True, default=dict)),
            ("file_name", models.CharField(blank=True, max_length=200)),
            ("error_code", models.CharField(blank=True, max_length=64)),
            ("error", models.TextField(blank=True)),
            ("cancel_asked_at", models.DateTimeField(blank=True, null=True)),
            ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            ("started_at", models.DateTimeField(blank=True, null=True)),
            ("finished_at", models.DateTimeField(blank=True, null=True)),
            ("attempt_count", models.PositiveIntegerField(default=0)),
            ("fencing_number", models.PositiveIntegerField(default=0)),
            ("home", models.CharField(blank=True, max_length=300)),
            ("lease_owner", models.CharField(blank=True, max_length=300)),
            ("not_before", models.DateTimeField(default=django.utils.timezone.now)),
            ("takeover_count", models.PositiveIntegerField(default=0)),
            ("unique_key", models.CharField(blank=True, max_length=200)),
            ("dismissed_at", models.DateTimeField(blank=True, null=True)),
        ],
        options={
            "indexes": [
                models.Index(fields=["workspace", "-id"], name="job_latest"),
                models.Index(fields=["status"], name="job_status"),
                models.Index(condition=models.Q(("status", "queued")), fields=["not_before"], name="job_due"),
            ],
            "constraints": [
                models.UniqueConstraint(
                    condition=models.Q(
                        ("cancel_asked_at", None),
                        ("status__in", ("queued", "running")),
                        models.Q(("unique_key", ""), _negated=True),
                    ),
                    fields=("unique_key",),
                    name="live_job_once",
                )
            ],
        },
    ),
    migrations.CreateModel(
        name="SetupToken",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("token_hash", models.CharField(max_length=64, unique=True)),
            ("expires_at", models.DateTimeField()),
            ("used_at", models.DateTimeField(blank=True, null=True)),
        ],
    ),
    migrations.CreateModel(
        name="Invitation",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("token_hash", models.CharField(max_length=64, unique=True)),
            ("name", models.CharField(blank=True, help_text="Who it is for, as the list shows it.", max_length=100)),
            ("is_operator", models.BooleanField(default=False)),
            (
                "user",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="invitations",
                    to=settings.AUTH_USER_MODEL,
                ),
            ),
            ("created_by", models.CharField(max_length=200)),
            ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            ("expires_at", models.DateTimeField()),
            ("used_at", models.DateTimeField(blank=True, null=True)),
            ("used_by", models.CharField(blank=True, max_length=150)),
            ("revoked_at", models.DateTimeField(blank=True, null=True)),
        ],
    ),
    migrations.CreateModel(
        name="InvitedRole",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "invitation",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE, related_name="roles", to="memoryhub.invitation"
                ),
            ),
            (
                "workspace",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="invited_roles",
                    to="sessions_app.workspace",
                ),
            ),
            ("role", models.CharField(max_length=16)),
        ],
        options={
            "constraints": [models.UniqueConstraint(fields=("invitation", "workspace"), name="invited_role_once")],
        },
    ),
    migrations.CreateModel(
        name="Preferences",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "user",
                models.OneToOneField(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="preferences",
                    to=settings.AUTH_USER_MODEL,
                ),
            ),
            (
                "theme",
                models.CharField(
                    blank=True,
                    choices=[("", "As the system has it"), ("light", "Light"), ("dark", "Dark")],
                    default="",
                    max_length=8,
                ),
            ),
            ("time_zone", models.CharField(blank=True, max_length=64)),
            ("language", models.CharField(blank=True, max_length=16)),
        ],
        options={
            "verbose_name_plural": "preferences",
        },
    ),
    migrations.CreateModel(
        name="SignIn",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "user",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE, related_name="sign_ins", to=settings.AUTH_USER_MODEL
                ),
            ),
            ("session_key", models.CharField(max_length=40, unique=True)),
            ("browser", models.CharField(blank=True, max_length=300)),
            ("address", models.CharField(blank=True, max_length=64)),
            ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            ("seen_at", models.DateTimeField(default=django.utils.timezone.now)),
        ],
        options={
            "indexes": [models.Index(fields=["user", "-seen_at"], name="sign_in_latest")],
        },
    ),
    migrations.CreateModel(
        name="RecentSearch",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "user",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="recent_searches",
                    to=settings.AUTH_USER_MODEL,
                ),
            ),
            (
                "workspace",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="recent_searches",
                    to="sessions_app.workspace",
                ),
            ),
            ("query", models.CharField(max_length=512)),
            ("searched_at", models.DateTimeField(default=django.utils.timezone.now)),
        ],
        options={
            "verbose_name_plural": "recent searches",
            "indexes": [models.Index(fields=["user", "-searched_at"], name="recent_search_latest")],
        },
    ),
    migrations.CreateModel(
        name="SavedSearch",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "user",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="saved_searches",
                    to=settings.AUTH_USER_MODEL,
                ),
            ),
            (
                "workspace",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="saved_searches",
                    to="sessions_app.workspace",
                ),
            ),
            ("name", models.CharField(max_length=100)),
            ("query", models.CharField(blank=True, max_length=512)),
            ("params", memoryhub.lib.database.fields.JSONTextField(blank=True, default=dict)),
            ("is_shared", models.BooleanField(default=False)),
            ("seen", memoryhub.lib.database.fields.JSONTextField(blank=True, default=dict)),
            ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            ("seen_at", models.DateTimeField(default=django.utils.timezone.now)),
        ],
        options={
            "verbose_name_plural": "saved searches",
            "constraints": [
                models.UniqueConstraint(fields=("user", "workspace", "name"), name="saved_search_name_once"),
                models.UniqueConstraint(
                    condition=models.Q(("workspace__isnull", True)),
                    fields=("user", "name"),
                    name="saved_search_of_hub_once",
                ),
            ],
        },
    ),
    migrations.CreateModel(
        name="ApiToken",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "workspace",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="api_tokens",
                    to="sessions_app.workspace",
                ),
            ),
            ("name", models.CharField(help_text="The agent's name, as records show it.", max_length=100)),
            ("prefix", models.CharField(max_length=16, unique=True)),
            ("token_hash", models.CharField(max_length=64)),
            ("scopes", memoryhub.lib.database.fields.JSONTextField(default=list)),
            ("per_minute", models.PositiveIntegerField(default=600)),
            ("created_by", models.CharField(max_length=200)),
            ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            ("expires_at", models.DateTimeField(blank=True, null=True)),
            ("last_used_at", models.DateTimeField(blank=True, null=True)),
            ("revoked_at", models.DateTimeField(blank=True, null=True)),
        ],
        options={
            "indexes": [models.Index(fields=["workspace", "-id"], name="token_latest")],
            "constraints": [
                models.UniqueConstraint(
                    condition=models.Q(("revoked_at__isnull", True)),
                    fields=("workspace", "name"),
                    name="living_token_name_once",
                )
            ],
        },
    ),
    migrations.CreateModel(
        name="AccessRecord",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "workspace",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="access_records",
                    to="sessions_app.workspace",
                ),
            ),
            (
                "token",
                models.ForeignKey(
                    null=True,
                    on_delete=django.db.models.deletion.SET_NULL,
                    related_name="access_records",
                    to="memoryhub.apitoken",
                ),
            ),
            ("actor_kind", models.CharField(max_length=16)),
            ("actor_name", models.CharField(max_length=200)),
            ("via", models.CharField(choices=[("page", "page"), ("rest", "REST"), ("mcp", "MCP")], max_length=16)),
            ("action", models.CharField(max_length=32)),
            ("row_count", models.PositiveIntegerField()),
            ("at", models.DateTimeField(default=django.utils.timezone.now)),
        ],
        options={
            "indexes": [
                models.Index(fields=["workspace", "-id"], name="access_latest"),
                models.Index(fields=["token", "-id"], name="access_of_token"),
                models.Index(fields=["at"], name="access_age"),
            ],
        },
    ),
    migrations.CreateModel(
        name="AccessedRow",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "access",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE, related_name="rows", to="memoryhub.accessrecord"
                ),
            ),
            ("table", models.CharField(max_length=32)),
            ("parent", models.BigIntegerField(default=0)),
            ("epoch", models.PositiveIntegerField(default=0)),
            ("first", models.BigIntegerField()),
            ("last", models.BigIntegerField()),
        ],
        options={
            "indexes": [models.Index(fields=["table", "parent", "epoch", "first"], name="accessed_row_of")],
        },
    ),
    migrations.CreateModel(
        name="IdempotentCall",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "token",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="idempotent_calls",
                    to="memoryhub.apitoken",
                ),
            ),
            ("idempotency_key", models.CharField(max_length=200)),
            ("request_hash", models.CharField(max_length=64)),
            ("status", models.PositiveSmallIntegerField()),
            ("answer", memoryhub.lib.database.fields.JSONTextField(null=True)),
            ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
        ],
        options={
            "indexes": [models.Index(fields=["created_at"], name="idempotent_call_age")],
            "constraints": [
                models.UniqueConstraint(fields=("token", "idempotency_key"), name="idempotency_key_once")
            ],
        },
    ),
    migrations.CreateModel(
        name="Process",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("name", models.CharField(max_length=300, unique=True)),
            (
                "kind",
                models.CharField(
                    choices=[("web", "Web"), ("worker", "Worker"), ("command", "Command")], max_length=16
                ),
            ),
            ("host", models.CharField(max_length=200)),
            ("pid", models.PositiveIntegerField()),
            ("home", models.CharField(blank=True, max_length=300)),
            ("started_at", models.DateTimeField(default=django.utils.timezone.now)),
            ("seen_at", models.DateTimeField()),
        ],
        options={
            "verbose_name_plural": "processes",
        },
    ),
    migrations.CreateModel(
        name="FailedAttempts",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("key", models.CharField(max_length=64, unique=True)),
            ("count", models.PositiveIntegerField(default=0)),
            ("expires_at", models.DateTimeField()),
        ],
        options={
            "verbose_name_plural": "failed attempts",
        },
    ),
    migrations.CreateModel(
        name="StoredSetting",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("name", models.CharField(max_length=64, unique=True)),
            ("value", models.TextField()),
            ("updated_by", models.CharField(max_length=200)),
            ("updated_at", models.DateTimeField(default=django.utils.timezone.now)),
        ],
    ),
    migrations.CreateModel(
        name="ReadGrant",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("ended_at", models.DateTimeField(blank=True, null=True)),
            (
                "token",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="read_grants",
                    to="memoryhub.apitoken",
                ),
            ),
            (
                "workspace",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="read_grants",
                    to="sessions_app.workspace",
                ),
            ),
        ],
        options={
            "constraints": [models.UniqueConstraint(fields=("token", "workspace"), name="read_grant_once")],
        },
    ),
    migrations.CreateModel(
        name="OAuthClient",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("client_id", models.CharField(max_length=64, unique=True)),
            ("name", models.CharField(max_length=80)),
            ("redirect_uris", memoryhub.lib.database.fields.JSONTextField(default=list)),
            ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
        ],
        options={
            "verbose_name": "OAuth client",
            "indexes": [models.Index(fields=["created_at"], name="oauth_client_age")],
        },
    ),
    migrations.CreateModel(
        name="OAuthConnection",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("resource", models.CharField(max_length=500)),
            ("redirect_uri", models.CharField(max_length=2000)),
            ("code_hash", models.CharField(max_length=64, unique=True)),
            ("code_challenge", models.CharField(max_length=43)),
            ("code_expires_at", models.DateTimeField()),
            ("code_used_at", models.DateTimeField(blank=True, null=True)),
            ("access_expires_at", models.DateTimeField(blank=True, null=True)),
            ("refresh_key", models.CharField(max_length=32, unique=True)),
            ("refresh_hash", models.CharField(blank=True, max_length=64)),
            (
                "client",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.PROTECT,
                    related_name="connections",
                    to="memoryhub.oauthclient",
                ),
            ),
            (
                "token",
                models.OneToOneField(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="connection",
                    to="memoryhub.apitoken",
                ),
            ),
            (
                "user",
                models.ForeignKey(
                    null=True,
                    on_delete=django.db.models.deletion.SET_NULL,
                    related_name="oauth_connections",
                    to=settings.AUTH_USER_MODEL,
                ),
            ),
        ],
        options={
            "verbose_name": "OAuth connection",
        },
    ),
    migrations.CreateModel(
        name="SecondFactor",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("secret", models.TextField()),
            ("last_step", models.PositiveBigIntegerField(default=0)),
            ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            (
                "user",
                models.OneToOneField(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="second_factor",
                    to=settings.AUTH_USER_MODEL,
                ),
            ),
        ],
    ),
    migrations.CreateModel(
        name="RecoveryCode",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("code_hash", models.CharField(max_length=64)),
            (
                "user",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="recovery_codes",
                    to=settings.AUTH_USER_MODEL,
                ),
            ),
        ],
        options={
            "constraints": [models.UniqueConstraint(fields=("user", "code_hash"), name="recovery_code_once")],
        },
    ),
    migrations.CreateModel(
        name="Identity",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("issuer", models.CharField(max_length=255)),
            ("subject", models.CharField(max_length=255)),
            ("email", models.CharField(blank=True, max_length=150)),
            ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            (
                "user",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="identities",
                    to=settings.AUTH_USER_MODEL,
                ),
            ),
            ("ended_at", models.DateTimeField(blank=True, null=True)),
        ],
        options={
            "constraints": [
                models.UniqueConstraint(
                    condition=models.Q(("ended_at", None)), fields=("issuer", "subject"), name="living_identity_once"
                ),
                models.UniqueConstraint(
                    condition=models.Q(("ended_at", None)),
                    fields=("user", "issuer"),
                    name="living_identity_of_user_once",
                ),
            ],
        },
    ),
    migrations.CreateModel(
        name="Passkey",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("name", models.CharField(max_length=100)),
            ("host", models.CharField(max_length=255)),
            ("credential_id", models.CharField(max_length=1400, unique=True)),
            ("credential", models.TextField()),
            ("handle", models.CharField(max_length=100)),
            ("sign_count", models.PositiveBigIntegerField(default=0)),
            ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            ("used_at", models.DateTimeField(blank=True, null=True)),
            (
                "user",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="passkeys",
                    to=settings.AUTH_USER_MODEL,
                ),
            ),
        ],
    ),
]

OF_827A92B = {
    "sessions_app": [
        "0002_append_only",
        "0003_living_store",
        "0004_fill_living_store",
        "0005_curation",
        "0006_redactable_audit",
        "0007_search",
        "0008_dense_search",
        "0009_two_way_sync",
        "0010_desk",
        "0011_sessions_in_use",
    ],
    "memoryhub": ["0002_searches", "0003_agents", "0004_desk"],
}
SINCE = {
    "sessions_app": [
        "0001_initial",
        "0002_search",
        "0003_jobs_of_results",
        "0004_remove_pending_state",
        "0005_knowledge_in_context",
        "0006_audit_chain",
        "0007_summary_prompt",
        "0008_agent_changes",
        "0009_search_folding",
        "0010_dismissed_imports",
        "0011_agents_records",
        "0012_projects",
        "0013_source_folders",
        "0014_parts_of_daily_totals",
        "0015_indexes_for_every_page",
        "0016_digests_of_deleted_sessions",
    ],
    "memoryhub": [
        "0001_initial",
        "0002_one_queue",
        "0003_move_pending_work",
        "0004_failed_attempts",
        "0005_erasure_jobs",
        "0006_dismissed_jobs",
        "0007_stored_settings",
        "0008_read_grants",
        "0009_oauth",
        "0010_second_factor",
        "0011_identities",
        "0012_passkeys",
        "0013_ended_identities",
    ],
}


class Migration(migrations.Migration):
    initial = True

    dependencies = [migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    replaces = [(app, name) for names in (OF_827A92B, SINCE) for app in names for name in names[app]]

    operations = [
        RenderOnce([*TABLES, *(InApp("memoryhub", table) for table in HUB_TABLES)]),
        # Not above: on PostgreSQL, the constraint would have another name than in databases that 0006 has altered.
        migrations.AlterField("auditrecord", "mac", models.CharField(blank=True, max_length=64, unique=True)),
        Protect("sessions_app_entry", free=("summary_id", "is_rewound")),
        Protect("sessions_app_auditrecord", free=("seal_id",)),
        Protect("sessions_app_auditseal", guarded=False),
        CreateSearchFunctions(),
        CreateSearchIndex(
            "sessions_app_entry",
            content=["content", "tool_calls"],
            json=["tool_calls"],
            meta=["name"],
            time="occurred_at",
            scope={"w": "workspace_id", "s": "session_id"},
            kind="kind",
            hidden_if=["is_injected", "is_rewound"],
        ),
        CreateSearchIndex(
            "sessions_app_summary",
            content=["content"],
            time="ends_at",
            scope={"w": "workspace_id", "s": "session_id"},
        ),
        CreateSearchIndex(
            "sessions_app_session",
            content=["title", "key", "summary_text", "note"],
            scope={"w": "workspace_id", "s": "id"},
        ),
    ]
