from django.urls import path

from memoryhub.audit.views import access_log, audit_log, timeline

urlpatterns = [
    path("activity/", audit_log.activity, name="hub-activity"),
    path("activity/export/", audit_log.export_activity, name="hub-export-activity"),
    path("w/<slug:slug>/timeline/", timeline.timeline, name="timeline"),
    path("w/<slug:slug>/access/", access_log.access_log, name="access"),
    path("w/<slug:slug>/entries/<int:pk>/access/", access_log.entry_access, name="entry-access"),
    path("w/<slug:slug>/activity/", audit_log.activity, name="activity"),
    path("w/<slug:slug>/activity/export/", audit_log.export_activity, name="export-activity"),
]
