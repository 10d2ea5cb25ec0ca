from django.urls import include, path

from memoryhub.knowledge.views import cached_responses, key_values, knowledge, observations, rows, scratchpads

KNOWLEDGE = {"kind": knowledge.KNOWLEDGE}
OBSERVATIONS = {"kind": observations.OBSERVATIONS}
KEY_VALUES = {"kind": key_values.KEY_VALUES}
CACHED_RESPONSES = {"kind": cached_responses.CACHED_RESPONSES}

workspace_patterns = [
    path("knowledge/", rows.list_rows, KNOWLEDGE, name="knowledge"),
    path("knowledge/new/", rows.new_row, KNOWLEDGE, name="new-knowledge"),
    path("knowledge/edit/", rows.edit_many, KNOWLEDGE, name="edit-knowledge"),
    path("knowledge/merge/", knowledge.merge_knowledge, name="merge-knowledge"),
    path("knowledge/context/", knowledge.knowledge_context, name="knowledge-context"),
    path("knowledge/download/", rows.download_rows, KNOWLEDGE, name="download-knowledge"),
    path("knowledge/markdown/", knowledge.knowledge_markdown, name="knowledge-markdown"),
    path("knowledge/<int:pk>/", rows.show_row, KNOWLEDGE, name="knowledge-entry"),
    path("knowledge/<int:pk>/edit/", rows.edit_row, KNOWLEDGE, name="edit-knowledge-entry"),
    path("observations/", rows.list_rows, OBSERVATIONS, name="observations"),
    path("observations/new/", rows.new_row, OBSERVATIONS, name="new-observation"),
    path("observations/edit/", rows.edit_many, OBSERVATIONS, name="edit-observations"),
    path("observations/offered/", observations.offered, name="offered"),
    path("observations/offered/<int:pk>/", observations.decide_offered, name="decide-offered"),
    path("observations/download/", rows.download_rows, OBSERVATIONS, name="download-observations"),
    path("observations/<int:pk>/", rows.show_row, OBSERVATIONS, name="observation"),
    path("observations/<int:pk>/edit/", rows.edit_row, OBSERVATIONS, name="edit-observation"),
    path("key-values/", rows.list_rows, KEY_VALUES, name="key-values"),
    path("key-values/new/", rows.new_row, KEY_VALUES, name="new-key-value"),
    path("key-values/edit/", rows.edit_many, KEY_VALUES, name="edit-key-values"),
    path("key-values/download/", key_values.download_key_values, name="download-key-values"),
    path("key-values/<int:pk>/", key_values.key_value, name="key-value"),
    path("key-values/<int:pk>/edit/", key_values.edit_key_value, name="edit-key-value"),
    path("key-values/<int:pk>/reveal/", key_values.reveal_key_value, name="reveal-key-value"),
    path("scratch/end/", scratchpads.end, name="end-scratch"),
    path("cached-responses/", rows.list_rows, CACHED_RESPONSES, name="cached-responses"),
    path("cached-responses/edit/", rows.edit_many, CACHED_RESPONSES, name="invalidate"),
    path("cached-responses/download/", rows.download_rows, CACHED_RESPONSES, name="download-cache"),
    path("cached-responses/<int:pk>/", cached_responses.cached_response, name="cached-response"),
]
urlpatterns = [path("w/<slug:slug>/", include((workspace_patterns, "knowledge")))]
