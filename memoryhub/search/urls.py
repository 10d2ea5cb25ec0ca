from django.urls import path

from memoryhub.search.views import actions, markdown, rebuild, recall, saved, search

urlpatterns = [
    path("search/", search.search, name="hub-search"),
    path("search/count/", search.count, name="hub-search-count"),
    path("search/facets/", search.narrowing, name="hub-search-facets"),
    path("search/complete/", search.complete, name="hub-complete-search"),
    path("search/export/", actions.export_matches, name="hub-export-matches"),
    path("search/markdown/", markdown.search, name="hub-search-markdown"),
    path("search/recent/", saved.note, name="hub-note-search"),
    path("search/recent/clear/", saved.clear, name="hub-clear-recent"),
    path("search/saved/", saved.saved_searches, name="hub-saved-searches"),
    path("search/saved/new/", saved.save, name="hub-save-search"),
    path("search/saved/<int:pk>/", saved.open_saved, name="hub-open-search"),
    path("search/saved/<int:pk>/delete/", saved.delete, name="hub-delete-search"),
    path("work/rebuild/", rebuild.rebuild_search, name="rebuild-search"),
    path("w/<slug:slug>/search/", search.search, name="search"),
    path("w/<slug:slug>/search/count/", search.count, name="search-count"),
    path("w/<slug:slug>/search/facets/", search.narrowing, name="search-facets"),
    path("w/<slug:slug>/search/complete/", search.complete, name="complete-search"),
    path("w/<slug:slug>/search/edit/", actions.edit_matches, name="edit-matches"),
    path("w/<slug:slug>/search/export/", actions.export_matches, name="export-matches"),
    path("w/<slug:slug>/search/markdown/", markdown.search, name="search-markdown"),
    path("w/<slug:slug>/search/around/<int:pk>/", search.around, name="search-around"),
    path("w/<slug:slug>/search/recent/", saved.note, name="note-search"),
    path("w/<slug:slug>/search/recent/clear/", saved.clear, name="clear-recent"),
    path("w/<slug:slug>/search/saved/", saved.saved_searches, name="saved-searches"),
    path("w/<slug:slug>/search/saved/new/", saved.save, name="save-search"),
    path("w/<slug:slug>/search/saved/<int:pk>/", saved.open_saved, name="open-search"),
    path("w/<slug:slug>/search/saved/<int:pk>/delete/", saved.delete, name="delete-search"),
    path("w/<slug:slug>/recall/", recall.recall, name="recall"),
]
