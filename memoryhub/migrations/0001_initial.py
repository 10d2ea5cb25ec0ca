import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import memoryhub.lib.database.fields
from memoryhub.lib.render_once import RenderOnce


TABLES = [
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
                    on_delete=django.db.models.deletion.CASCADE, related_name="api_tokens", to="sessions_app.workspace"
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
            "constraints": [models.UniqueConstraint(fields=("token", "idempotency_key"), name="idempotency_key_once")],
        },
    ),
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
                    choices=[("export", "Export"), ("compression", "Compression"), ("rebuild", "Rebuild")],
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
            ("heartbeat_at", models.DateTimeField(blank=True, null=True)),
            ("finished_at", models.DateTimeField(blank=True, null=True)),
        ],
        options={
            "indexes": [
                models.Index(fields=["workspace", "-id"], name="job_latest"),
                models.Index(fields=["status"], name="job_status"),
            ],
        },
    ),
]


class Migration(migrations.Migration):
    initial = True

    dependencies = [("sessions_app", "0001_initial"), migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [RenderOnce(TABLES)]
