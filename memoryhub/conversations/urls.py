from django.urls import include, path

from memoryhub.conversations.views import actions, bulk, context, markdown, session_list, transcript
from memoryhub.insights import views as insights

workspace_patterns = [
    path("sessions/", session_list.session_list, name="list"),
    path("sessions/<int:pk>/", transcript.detail, name="detail"),
    path("sessions/<int:pk>/reveal/", transcript.reveal, name="reveal"),
    path("sessions/<int:pk>/arrivals/", transcript.arrivals, name="arrivals"),
    path("sessions/<int:pk>/statistics/", insights.session_statistics, name="session-statistics"),
    path("sessions/<int:pk>/statistics/<slug:chart>.csv", insights.statistics_csv, name="session-statistics-csv"),
    path("entries/<int:pk>/", transcript.entry, name="entry"),
    path("statistics/", insights.statistics, name="statistics"),
    path("statistics/<slug:chart>.csv", insights.statistics_csv, name="statistics-csv"),
]
urlpatterns = [
    path("w/<slug:slug>/", include((workspace_patterns, "sessions"))),
    path("w/<slug:slug>/sessions/edit/", bulk.edit_sessions, name="edit-sessions"),
    path("w/<slug:slug>/sessions/delete/", bulk.delete_sessions, name="delete-sessions"),
    path("w/<slug:slug>/sessions/new/", actions.new_session, name="new-session"),
    path("w/<slug:slug>/sessions/deleted/<int:pk>/allow/", actions.allow, name="allow-session"),
    path("w/<slug:slug>/sessions/<int:pk>/append/", actions.append_entry, name="append-entry"),
    path("w/<slug:slug>/sessions/<int:pk>/rename/", actions.rename, name="rename-session"),
    path("w/<slug:slug>/sessions/<int:pk>/clear/", actions.clear, name="clear-session"),
    path("w/<slug:slug>/sessions/<int:pk>/prune/", actions.prune, name="prune-session"),
    path("w/<slug:slug>/sessions/<int:pk>/archive/", actions.edit, {"action": "archive"}, name="archive-session"),
    path(
        "w/<slug:slug>/sessions/<int:pk>/unarchive/", actions.edit, {"action": "unarchive"}, name="unarchive-session"
    ),
    path("w/<slug:slug>/sessions/<int:pk>/delete/", actions.delete, name="delete-session"),
    path("w/<slug:slug>/sessions/<int:pk>/export/", actions.export, name="export-session"),
    path("w/<slug:slug>/sessions/<int:pk>/live/", actions.live, name="session-live"),
    path("w/<slug:slug>/sessions/<int:pk>/markdown/", markdown.session, name="session-markdown"),
    path("w/<slug:slug>/sessions/<int:pk>/context/markdown/", markdown.context, name="context-markdown"),
    path("w/<slug:slug>/sessions/<int:pk>/context/", context.session_context, name="session-context"),
    path("w/<slug:slug>/sessions/<int:pk>/context/reveal/", context.reveal_context, name="reveal-context"),
    path("w/<slug:slug>/sessions/<int:pk>/context/<slug:shape>/", context.context_json, name="context-json"),
]
