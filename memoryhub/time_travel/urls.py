from django.urls import path

from memoryhub.time_travel.views import compare, snapshot

urlpatterns = [
    path("w/<slug:slug>/past/", snapshot.past, name="past"),
    path("w/<slug:slug>/past/compare/", compare.compare_past, name="compare-past"),
    path("w/<slug:slug>/past/<str:part>/<int:pk>/restore/", snapshot.restore_row, name="restore-row"),
]
