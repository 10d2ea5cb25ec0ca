from django.urls import include, path

from memoryhub.documents.views import documents, editing, fact, facts, history, markdown, people, revisions

workspace_patterns = [
    path("sessions/<int:pk>/learnt/", editing.learnt, name="learnt"),
    path("memory/new/", editing.start, name="start-document"),
    path("memory/<int:pk>/", documents.document, name="document"),
    path("memory/<int:pk>/news/", documents.document_news, name="document-news"),
    path("memory/<int:pk>/delivery/", documents.delivery, name="document-delivery"),
    path("memory/<int:pk>/reveal/", documents.reveal, name="reveal-document"),
    path("memory/<int:pk>/edit/", editing.edit, name="edit-document"),
    path("memory/<int:pk>/preview/", editing.preview, name="preview-document"),
    path("memory/<int:pk>/history/", revisions.revisions, name="revisions"),
    path("memory/<int:pk>/compare/", editing.compare, name="compare"),
    path("memory/<int:pk>/compact/", editing.compact, name="compact"),
    path("memory/<int:pk>/origins/", editing.blame, name="blame"),
    path("memory/<int:pk>/facts/", facts.facts, name="facts"),
    path("memory/<int:pk>/facts/curate/", facts.curate, name="curate-facts"),
    path("memory/<int:pk>/restore/<int:number>/", editing.restore, name="restore-revision"),
    path("memory/<int:pk>/undo/<int:number>/", facts.undo, name="undo-revision"),
    path("memory/facts/<int:pk>/", fact.fact, name="fact"),
    path("memory/facts/<int:pk>/curate/", fact.curate, name="curate-fact"),
    path("memory/facts/<int:pk>/edit/", editing.edit_fact_line, name="edit-fact"),
    path("memory/facts/<int:pk>/return/", editing.return_fact, name="return-fact"),
    path("history/", history.history, name="history"),
    path("history/edit/", history.edit_history, name="edit-history"),
    path("history/note/", history.note_history, name="note-history"),
]
urlpatterns = [
    path("w/<slug:slug>/", include((workspace_patterns, "documents"))),
    path("documents/people/", people.people_documents, name="people-documents"),
    path("w/<slug:slug>/memory/<int:pk>/markdown/", markdown.document, name="document-markdown"),
]
