from django.urls import include, path

from memoryhub.knowledge.views import cached_responses, key_values, knowledge, observations, scratchpads

workspace_patterns = [
    path("knowledge/", knowledge.knowledge, name="knowledge"),
    path("knowledge/new/", knowledge.new_knowledge, name="new-knowledge"),
    path("knowledge/edit/", knowledge.edit_many, name="edit-knowledge"),
    path("knowledge/merge/", knowledge.merge_knowledge, name="merge-knowledge"),
    path("knowledge/context/", knowledge.knowledge_context, name="knowledge-context"),
    path("knowledge/download/", knowledge.download_knowledge, name="download-knowledge"),
    path("knowledge/markdown/", knowledge.knowledge_markdown, name="knowledge-markdown"),
    path("knowledge/<int:pk>/", knowledge.knowledge_entry, name="knowledge-entry"),
    path("knowledge/<int:pk>/edit/", knowledge.edit_one, name="edit-knowledge-entry"),
    path("observations/", observations.observations, name="observations"),
    path("observations/new/", observations.new_observation, name="new-observation"),
    path("observations/edit/", observations.edit_many, name="edit-observations"),
    path("observations/offered/", observations.offered, name="offered"),
    path("observations/offered/<int:pk>/", observations.decide_offered, name="decide-offered"),
    path("observations/download/", observations.download_observations, name="download-observations"),
    path("observations/<int:pk>/", observations.observation, name="observation"),
    path("observations/<int:pk>/edit/", observations.edit_one, name="edit-observation"),
    path("key-values/", key_values.key_values, name="key-values"),
    path("key-values/new/", key_values.new_key_value, name="new-key-value"),
    path("key-values/edit/", key_values.edit_many, name="edit-key-values"),
    path("key-values/download/", key_values.download_key_values, name="download-key-values"),
    path("key-values/<int:pk>/", key_values.key_value, name="key-value"),
    path("key-values/<int:pk>/edit/", key_values.edit_one, name="edit-key-value"),
    path("key-values/<int:pk>/reveal/", key_values.reveal_key_value, name="reveal-key-value"),
    path("scratch/end/", scratchpads.end, name="end-scratch"),
    path("cached-responses/", cached_responses.cached_responses, name="cached-responses"),
    path("cached-responses/edit/", cached_responses.invalidate, name="invalidate"),
    path("cached-responses/download/", cached_responses.download_cache, name="download-cache"),
    path("cached-responses/<int:pk>/", cached_responses.cached_response, name="cached-response"),
]
urlpatterns = [path("w/<slug:slug>/", include((workspace_patterns, "knowledge")))]
