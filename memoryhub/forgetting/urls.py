from django.urls import path

from memoryhub.forgetting import person_views, views

urlpatterns = [
    path("w/<slug:slug>/forget/", views.forget, name="forget"),
    path("w/<slug:slug>/forget/<int:pk>/allow/", views.allow, name="allow-forgotten"),
    path("person-data/", person_views.person_data, name="person-data"),
    path("person-data/export/", person_views.export, name="export-person-data"),
    path("person-data/erase/", person_views.erase, name="erase-person"),
    path("person-data/receipts/<int:pk>/allow/", person_views.allow, name="allow-person"),
]
