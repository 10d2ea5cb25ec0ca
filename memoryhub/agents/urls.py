from django.urls import path

from memoryhub.agents import views
from memoryhub.agents.oauth.views import authorize

urlpatterns = [
    path("oauth/authorize/", authorize, name="oauth-authorize"),
    path("w/<slug:slug>/connect/", views.connect, name="connect"),
    path("w/<slug:slug>/connect/first-call/", views.first_call, name="first-call"),
    path("w/<slug:slug>/agents/", views.agents, name="agents"),
    path("w/<slug:slug>/agents/new/", views.new_token, name="new-token"),
    path("w/<slug:slug>/agents/readers/<int:pk>/end/", views.end_reading, name="end-reading"),
    path("w/<slug:slug>/agents/<int:pk>/revoke/", views.revoke, name="revoke-token"),
]
