from django.urls import path

from memoryhub.graph.views import memory_graph, term, terms

urlpatterns = [
    path("w/<slug:slug>/graph/", memory_graph.memory_graph, name="graph"),
    path("w/<slug:slug>/graph/data/", memory_graph.memory_graph_data, name="graph-data"),
    path("w/<slug:slug>/graph/node/", memory_graph.memory_graph_node, name="graph-node"),
    path("w/<slug:slug>/graph/facts/", memory_graph.memory_graph_facts, name="graph-facts"),
    path("w/<slug:slug>/terms/", terms.terms, name="terms"),
    path("w/<slug:slug>/terms/embed/", terms.embed, {"rebuild": False}, name="embed-terms"),
    path("w/<slug:slug>/terms/rebuild/", terms.embed, {"rebuild": True}, name="rebuild-terms"),
    path("w/<slug:slug>/terms/export/", terms.export, name="export-terms"),
    path("w/<slug:slug>/terms/<int:pk>/", term.term, name="term"),
    path("w/<slug:slug>/terms/<int:pk>/relate/", term.relate, name="relate-terms"),
    path("w/<slug:slug>/terms/<int:pk>/pin/", term.decide_relation, {"action": "pin"}, name="pin-relation"),
    path("w/<slug:slug>/terms/<int:pk>/unpin/", term.decide_relation, {"action": "unpin"}, name="unpin-relation"),
    path("w/<slug:slug>/terms/<int:pk>/remove/", term.decide_relation, {"action": "remove"}, name="remove-relation"),
    path(
        "w/<slug:slug>/terms/<int:pk>/restore/", term.decide_relation, {"action": "restore"}, name="restore-relation"
    ),
]
