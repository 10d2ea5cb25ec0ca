import django.db.models.deletion
import django.utils.timezone
import memoryhub.lib.database.fields
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memoryhub', '0008_read_grants'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='OAuthClient',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('client_id', models.CharField(max_length=64, unique=True)),
                ('name', models.CharField(max_length=80)),
                ('redirect_uris', memoryhub.lib.database.fields.JSONTextField(default=list)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                'verbose_name': 'OAuth client',
                'indexes': [models.Index(fields=['created_at'], name='oauth_client_age')],
            },
        ),
        migrations.CreateModel(
            name='OAuthConnection',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('resource', models.CharField(max_length=500)),
                ('redirect_uri', models.CharField(max_length=2000)),
                ('code_hash', models.CharField(max_length=64, unique=True)),
                ('code_challenge', models.CharField(max_length=43)),
                ('code_expires_at', models.DateTimeField()),
                ('code_used_at', models.DateTimeField(blank=True, null=True)),
                ('access_expires_at', models.DateTimeField(blank=True, null=True)),
                ('refresh_key', models.CharField(max_length=32, unique=True)),
                ('refresh_hash', models.CharField(blank=True, max_length=64)),
                ('client', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='connections', to='memoryhub.oauthclient')),
                ('token', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='connection', to='memoryhub.apitoken')),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='oauth_connections', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'OAuth connection',
            },
        ),
    ]
