import django.db.models.deletion
import django.utils.timezone
import memoryhub.lib.fields
from django.db import migrations, models

from memoryhub.lib.append_only import Protect


class Migration(migrations.Migration):

    dependencies = [
        ('sessions_app', '0002_append_only'),
    ]

    operations = [
        migrations.CreateModel(
            name='AppendReceipt',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('idempotency_key', models.CharField(max_length=200)),
                ('body_hash', models.CharField(max_length=64)),
                ('epoch', models.PositiveIntegerField()),
                ('first_position', models.PositiveIntegerField()),
                ('entry_count', models.PositiveIntegerField()),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
        migrations.CreateModel(
            name='DeletedSession',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=512)),
                ('entry_count', models.PositiveIntegerField()),
                ('summary_count', models.PositiveIntegerField()),
                ('total_tokens', models.PositiveBigIntegerField()),
                ('content_hash', models.CharField(max_length=64)),
                ('deleted_by', models.CharField(max_length=200)),
                ('reason', models.TextField(blank=True)),
                ('deleted_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
        migrations.CreateModel(
            name='Webhook',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('url', models.CharField(max_length=500)),
                ('actions', memoryhub.lib.fields.JSONTextField(default=list)),
                ('salt', models.CharField(max_length=64)),
                ('is_enabled', models.BooleanField(default=True)),
                ('created_by', models.CharField(max_length=200)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
        migrations.CreateModel(
            name='WebhookDelivery',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('status', models.CharField(choices=[('waiting', 'Waiting'), ('sent', 'Sent'), ('failed', 'Failed')], default='waiting', max_length=16)),
                ('attempt_count', models.PositiveIntegerField(default=0)),
                ('next_attempt_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('response_status', models.PositiveIntegerField(blank=True, null=True)),
                ('error', models.TextField(blank=True)),
                ('sent_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'verbose_name_plural': 'webhook deliveries',
            },
        ),
        migrations.RemoveConstraint(
            model_name='run',
            name='run_one_live_per_session',
        ),
        migrations.AddField(
            model_name='auditrecord',
            name='session',
            field=models.ForeignKey(db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='sessions_app.session'),
        ),
        migrations.AddField(
            model_name='entry',
            name='token_method',
            field=models.CharField(default='estimate', max_length=24),
        ),
        migrations.AddField(
            model_name='run',
            name='not_before',
            field=models.DateTimeField(default=django.utils.timezone.now),
        ),
        migrations.AddField(
            model_name='run',
            name='options',
            field=memoryhub.lib.fields.JSONTextField(blank=True, default=dict),
        ),
        migrations.AddField(
            model_name='run',
            name='stage',
            field=models.CharField(blank=True, max_length=200),
        ),
        migrations.AddField(
            model_name='run',
            name='steps_done',
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='run',
            name='steps_total',
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='session',
            name='next_position',
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='summary',
            name='run',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='summaries', to='sessions_app.run'),
        ),
        migrations.AddField(
            model_name='workspace',
            name='model_base_url',
            field=models.CharField(blank=True, max_length=500),
        ),
        migrations.AddIndex(
            model_name='auditrecord',
            index=models.Index(condition=models.Q(('session__isnull', False)), fields=['session', '-id'], name='audit_of_session'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(condition=models.Q(('status__in', ('queued', 'running'))), fields=['status', 'not_before'], name='run_live'),
        ),
        migrations.AddConstraint(
            model_name='run',
            constraint=models.UniqueConstraint(condition=models.Q(('status', 'running')), fields=('session',), name='run_one_running_per_session'),
        ),
        migrations.AddConstraint(
            model_name='run',
            constraint=models.UniqueConstraint(condition=models.Q(('status', 'queued')), fields=('session', 'kind'), name='run_one_queued_per_kind'),
        ),
        migrations.AddConstraint(
            model_name='session',
            constraint=models.CheckConstraint(condition=models.Q(('next_position__lte', models.F('entry_count'))), name='session_epoch_within_all'),
        ),
        migrations.AddField(
            model_name='appendreceipt',
            name='session',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='append_receipts', to='sessions_app.session'),
        ),
        migrations.AddField(
            model_name='deletedsession',
            name='workspace',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deleted_sessions', to='sessions_app.workspace'),
        ),
        migrations.AddField(
            model_name='webhook',
            name='workspace',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='webhooks', to='sessions_app.workspace'),
        ),
        migrations.AddField(
            model_name='webhookdelivery',
            name='record',
            field=models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='sessions_app.auditrecord'),
        ),
        migrations.AddField(
            model_name='webhookdelivery',
            name='webhook',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='sessions_app.webhook'),
        ),
        migrations.AddConstraint(
            model_name='appendreceipt',
            constraint=models.UniqueConstraint(fields=('session', 'idempotency_key'), name='append_receipt_key_once'),
        ),
        migrations.AddConstraint(
            model_name='deletedsession',
            constraint=models.UniqueConstraint(fields=('workspace', 'key'), name='deleted_session_key_once'),
        ),
        migrations.AddConstraint(
            model_name='webhook',
            constraint=models.UniqueConstraint(fields=('workspace', 'url'), name='webhook_url_once'),
        ),
        migrations.AddIndex(
            model_name='webhookdelivery',
            index=models.Index(condition=models.Q(('status', 'waiting')), fields=['next_attempt_at'], name='webhook_delivery_due'),
        ),
        migrations.AddIndex(
            model_name='webhookdelivery',
            index=models.Index(fields=['webhook', '-id'], name='webhook_delivery_latest'),
        ),
        migrations.AddConstraint(
            model_name='webhookdelivery',
            constraint=models.UniqueConstraint(fields=('webhook', 'record'), name='webhook_delivery_once'),
        ),
        Protect("sessions_app_entry", free=("summary_id",)),
        Protect("sessions_app_auditrecord", guarded=False),
    ]
