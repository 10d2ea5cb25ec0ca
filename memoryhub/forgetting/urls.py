from django.urls import path

from memoryhub.forgetting import views

urlpatterns = [
    path("w/<slug:slug>/forget/", views.forget, name="forget"),
    path("w/<slug:slug>/forget/<int:pk>/allow/", views.allow, name="allow-forgotten"),
]
