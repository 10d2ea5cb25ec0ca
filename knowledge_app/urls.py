from django.urls import path

from knowledge_app import views

app_name = "knowledge"

urlpatterns = [
    path("memory/", views.documents, name="documents"),
    path("sessions/<int:pk>/learnt/", views.editing.learnt, name="learnt"),
    path("memory/new/", views.editing.start, name="start-document"),
    path("memory/<int:pk>/", views.document, name="document"),
    path("memory/<int:pk>/edit/", views.editing.edit, name="edit-document"),
    path("memory/<int:pk>/preview/", views.editing.preview, name="preview-document"),
    path("memory/<int:pk>/compare/", views.editing.compare, name="compare"),
    path("memory/<int:pk>/compact/", views.editing.compact, name="compact"),
    path("memory/<int:pk>/origins/", views.editing.blame, name="blame"),
    path("memory/<int:pk>/facts/", views.editing.facts, name="facts"),
    path("memory/<int:pk>/facts/curate/", views.editing.curate, name="curate-facts"),
    path("memory/<int:pk>/restore/<int:number>/", views.editing.restore, name="restore-revision"),
    path("memory/facts/<int:pk>/edit/", views.editing.edit_fact_line, name="edit-fact"),
    path("memory/facts/<int:pk>/return/", views.editing.return_fact, name="return-fact"),
    path("history/", views.history, name="history"),
    path("history/note/", views.note_history, name="note-history"),
    path("knowledge/", views.knowledge, name="knowledge"),
    path("observations/", views.observations, name="observations"),
    path("key-values/", views.key_values, name="key-values"),
    path("key-values/<int:pk>/", views.key_value, name="key-value"),
    path("key-values/<int:pk>/reveal/", views.reveal_key_value, name="reveal-key-value"),
    path("terms/<int:pk>/", views.graph.term, name="term"),
    path("terms/<int:pk>/relate/", views.graph.relate, name="relate-terms"),
    path("terms/<int:pk>/pin/", views.graph.pin_relation, name="pin-relation"),
    path("terms/<int:pk>/unpin/", views.graph.unpin_relation, name="unpin-relation"),
    path("terms/<int:pk>/remove/", views.graph.remove_relation, name="remove-relation"),
    path("terms/<int:pk>/restore/", views.graph.restore_relation, name="restore-relation"),
    path("cached-responses/", views.cached_responses, name="cached-responses"),
    path("cached-responses/<int:pk>/", views.cached_response, name="cached-response"),
]
