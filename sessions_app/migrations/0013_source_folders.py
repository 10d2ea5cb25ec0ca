import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

from memoryhub.lib.database.add_column import AddColumn


class Migration(migrations.Migration):

    dependencies = [
        ("sessions_app", "0012_projects"),
    ]

    operations = [
        migrations.CreateModel(
            name='SourceFolder',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('label', models.CharField(max_length=64)),
                ('path', models.TextField()),
                ('project', models.TextField(blank=True, default='')),
                ('layout', models.CharField(choices=[('nanobot', 'nanobot'), ('grip', 'Grip'), ('grid', 'grid'), ('agterm', 'AgTerm'), ('claude-code', 'Claude Code'), ('codex', 'Codex'), ('gemini-cli', 'Gemini CLI'), ('openclaw', 'OpenClaw'), ('opencode', 'OpenCode'), ('hermes', 'Hermes'), ('server-memory', 'server-memory'), ('basic-memory', 'basic-memory'), ('memory-bank', 'Memory bank'), ('hub', 'MemoryHub')], max_length=16)),
                ('layout_version', models.CharField(blank=True, max_length=100)),
                ('instructions_path', models.TextField(blank=True, default='')),
                ('is_followed', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('removed_at', models.DateTimeField(blank=True, null=True)),
                ('succeeded_at', models.DateTimeField(blank=True, null=True)),
                ('changed_at', models.DateTimeField(blank=True, null=True)),
                ('failed_at', models.DateTimeField(blank=True, null=True)),
                ('error_code', models.CharField(blank=True, max_length=64)),
                ('error', models.TextField(blank=True)),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='source_folders', to='sessions_app.workspace')),
            ],
        ),
        AddColumn(
            model_name='sourcefile',
            name='folder',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='files', to='sessions_app.sourcefolder'),
        ),
        migrations.AddConstraint(
            model_name='sourcefolder',
            constraint=models.UniqueConstraint(fields=('workspace', 'label'), name='source_folder_label_once'),
        ),
        migrations.AddConstraint(
            model_name='sourcefolder',
            constraint=models.UniqueConstraint(fields=('workspace', 'path', 'project'), name='source_folder_once'),
        ),
        migrations.AddConstraint(
            model_name='sourcefolder',
            constraint=models.CheckConstraint(condition=models.Q(('failed_at', None), models.Q(('error_code', ''), _negated=True), _connector='OR'), name='source_folder_failure_has_code'),
        ),
    ]
