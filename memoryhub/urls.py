from django.conf import settings
from django.contrib import admin
from django.contrib.auth import views as auth_views
from django.urls import URLPattern, URLResolver, include, path

from memoryhub import views
from memoryhub.forms import LoginForm

urlpatterns: list[URLPattern | URLResolver] = [
    path("", views.home, name="home"),
    path("health/", views.health, name="health"),
    path("setup/<str:token>/", views.setup, name="setup"),
    path(
        "login/", auth_views.LoginView.as_view(redirect_authenticated_user=True, form_class=LoginForm), name="login"
    ),
    path("logout/", auth_views.LogoutView.as_view(), name="logout"),
    path("import/", views.new_import, name="import"),
    path("demo/", views.open_demo, name="demo"),
    path("imports/<int:pk>/", views.import_report, name="import-report"),
    path("w/<slug:slug>/", views.overview, name="workspace"),
    path("w/<slug:slug>/imports/", views.workspace_imports, name="workspace-imports"),
    path("w/<slug:slug>/imports/files/", views.workspace_files, name="workspace-files"),
    path("w/<slug:slug>/imports/again/", views.import_again, name="import-again"),
    path("w/<slug:slug>/sessions/<int:pk>/context/", views.session_context, name="session-context"),
    path("w/<slug:slug>/", include("sessions_app.urls")),
    path("w/<slug:slug>/", include("knowledge_app.urls")),
]
if settings.MEMORYHUB_ADMIN:
    urlpatterns.append(path("admin/", admin.site.urls))
