from django.urls import path

from memoryhub.memory.views import memory

urlpatterns = [
    path("w/<slug:slug>/memory/", memory.memory, name="memory"),
    path("w/<slug:slug>/memory/edit/", memory.edit_memory, name="edit-memory"),
    path("w/<slug:slug>/memory/export/", memory.export_memory, name="export-memory"),
]
