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
    path("new/", views.new_workspace, name="new-workspace"),
    path("demo/", views.open_demo, name="demo"),
    path("imports/<int:pk>/", views.import_report, name="import-report"),
    path("w/<slug:slug>/", views.overview, name="workspace"),
    path("w/<slug:slug>/imports/", views.workspace_imports, name="workspace-imports"),
    path("w/<slug:slug>/imports/files/", views.workspace_files, name="workspace-files"),
    path("w/<slug:slug>/imports/again/", views.import_again, name="import-again"),
    path("w/<slug:slug>/settings/", views.workspace_settings, name="workspace-settings"),
    path("w/<slug:slug>/settings/webhooks/", views.webhooks, name="webhooks"),
    path("w/<slug:slug>/settings/webhooks/<int:pk>/delete/", views.delete_webhook, name="delete-webhook"),
    path("w/<slug:slug>/review/", views.review.inbox, name="review"),
    path("w/<slug:slug>/review/<int:pk>/", views.review.held_change, name="held-change"),
    path("w/<slug:slug>/review/<int:pk>/approve/", views.review.approve_held_change, name="approve-held-change"),
    path("w/<slug:slug>/review/<int:pk>/reject/", views.review.reject_held_change, name="reject-held-change"),
    path("w/<slug:slug>/sessions/<int:pk>/consolidate/", views.runs.consolidate, name="consolidate-session"),
    path("w/<slug:slug>/forget/", views.forget.forget, name="forget"),
    path("w/<slug:slug>/forget/<int:pk>/allow/", views.forget.allow, name="allow-forgotten"),
    path("w/<slug:slug>/recall/", views.recall, name="recall"),
    path("w/<slug:slug>/activity/", views.activity, name="activity"),
    path("w/<slug:slug>/hygiene/", views.hygiene.desk, name="hygiene"),
    path("w/<slug:slug>/hygiene/scan/", views.hygiene.scan, name="scan-hygiene"),
    path("w/<slug:slug>/hygiene/progress/", views.hygiene.progress, name="hygiene-progress"),
    path("w/<slug:slug>/hygiene/dismiss/", views.hygiene.dismiss, name="dismiss-concerns"),
    path("w/<slug:slug>/hygiene/reopen/", views.hygiene.reopen, name="reopen-concerns"),
    path("w/<slug:slug>/hygiene/withdraw/", views.hygiene.withdraw, name="withdraw-concerns"),
    path("w/<slug:slug>/hygiene/keep-first/", views.hygiene.keep_first, name="keep-first"),
    path("w/<slug:slug>/hygiene/keep-other/", views.hygiene.keep_other, name="keep-other"),
    path("w/<slug:slug>/hygiene/verify/", views.hygiene.verify, name="verify-concerns"),
    path("w/<slug:slug>/hygiene/review-by/", views.hygiene.review_by, name="review-concerns"),
    path("w/<slug:slug>/runs/", views.runs.run_list, name="runs"),
    path("w/<slug:slug>/runs/consolidate-due/", views.runs.consolidate_due, name="consolidate-due"),
    path("w/<slug:slug>/runs/<int:pk>/", views.runs.run_page, name="run"),
    path("w/<slug:slug>/runs/<int:pk>/cancel/", views.runs.cancel, name="cancel-run"),
    path("w/<slug:slug>/runs/<int:pk>/retry/", views.runs.retry, name="retry-run"),
    path("w/<slug:slug>/runs/<int:pk>/fold/", views.runs.fold_by_rule, name="fold-run"),
    path("w/<slug:slug>/runs/<int:pk>/skip/", views.runs.skip, name="skip-run"),
    path("w/<slug:slug>/runs/<int:pk>/dismiss/", views.runs.dismiss, name="dismiss-run"),
    path("w/<slug:slug>/runs/<int:pk>/undo/", views.runs.undo, name="undo-run"),
    path("w/<slug:slug>/runs/<int:pk>/approve/", views.runs.approve, name="approve-run"),
    path("w/<slug:slug>/sessions/new/", views.sessions.new_session, name="new-session"),
    path("w/<slug:slug>/sessions/deleted/<int:pk>/allow/", views.sessions.allow, name="allow-session"),
    path("w/<slug:slug>/sessions/<int:pk>/context/", views.session_context, name="session-context"),
    path("w/<slug:slug>/sessions/<int:pk>/compress/", views.runs.compress, name="compress-session"),
    path("w/<slug:slug>/sessions/<int:pk>/append/", views.sessions.append_entry, name="append-entry"),
    path("w/<slug:slug>/sessions/<int:pk>/rename/", views.sessions.rename, name="rename-session"),
    path("w/<slug:slug>/sessions/<int:pk>/clear/", views.sessions.clear, name="clear-session"),
    path("w/<slug:slug>/sessions/<int:pk>/prune/", views.sessions.prune, name="prune-session"),
    path("w/<slug:slug>/sessions/<int:pk>/delete/", views.sessions.delete, name="delete-session"),
    path("w/<slug:slug>/sessions/<int:pk>/export/", views.sessions.export, name="export-session"),
    path("w/<slug:slug>/sessions/<int:pk>/live/", views.sessions.live, name="session-live"),
    path("w/<slug:slug>/", include("sessions_app.urls")),
    path("w/<slug:slug>/", include("knowledge_app.urls")),
]
if settings.MEMORYHUB_ADMIN:
    urlpatterns.append(path("admin/", admin.site.urls))
