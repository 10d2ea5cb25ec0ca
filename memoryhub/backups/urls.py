from django.urls import path

from memoryhub.backups import views

urlpatterns = [
    path("backups/", views.backups, name="backups"),
    path("backups/cancel/", views.cancel, name="cancel-backup"),
    path("backups/make/", views.make, name="make-backup"),
    path("backups/<str:name>/download/", views.download, name="download-backup"),
    path("backups/<str:name>/check/", views.check, name="check-backup"),
    path("backups/<str:name>/delete/", views.delete, name="delete-backup"),
]
