from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("memoryhub", "0003_move_pending_work"), ("sessions_app", "0003_jobs_of_results")]

    operations = [
        migrations.RemoveIndex("webhookdelivery", "webhook_delivery_due"),
        migrations.RemoveField("webhookdelivery", "next_attempt_at"),
        migrations.RemoveField("importreport", "cancel_asked_at"),
        migrations.RemoveField("importreport", "started_at"),
        migrations.RemoveField("syncstate", "requested_at"),
    ]
