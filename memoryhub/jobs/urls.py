from django.urls import path

from memoryhub.jobs import views

urlpatterns = [
    path("work/", views.work, name="work"),
    path("work/<int:pk>/", views.job_page, name="job"),
    path("work/<int:pk>/cancel/", views.cancel, name="cancel-job"),
    path("work/<int:pk>/retry/", views.retry, name="retry-job"),
    path("work/<int:pk>/download/", views.download, name="download-job"),
    path("w/<slug:slug>/work/", views.workspace_work, name="workspace-work"),
]
