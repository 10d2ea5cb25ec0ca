from django.urls import path

from memoryhub.dashboard.views import design, home, hub_settings, live, overview, palette, workspace_settings

urlpatterns = [
    path("", home.home, name="home"),
    path("health/", home.health, name="health"),
    path("new/", workspace_settings.new_workspace, name="new-workspace"),
    path("demo/", home.open_demo, name="demo"),
    path("settings/", hub_settings.hub_settings, name="hub-settings"),
    path("settings/<slug:section>/", hub_settings.save, name="save-hub-settings"),
    path("settings/<slug:section>/test/", hub_settings.test_connection, name="test-connection"),
    path("palette/", palette.palette, name="palette"),
    path("changes/", live.changes, name="hub-changes"),
    path("design/", design.design, name="design"),
    path("w/<slug:slug>/", overview.overview, name="workspace"),
    path("w/<slug:slug>/settings/", workspace_settings.workspace_settings, name="workspace-settings"),
    path("w/<slug:slug>/settings/webhooks/", workspace_settings.webhooks, name="webhooks"),
    path(
        "w/<slug:slug>/settings/webhooks/<int:pk>/delete/", workspace_settings.delete_webhook, name="delete-webhook"
    ),
    path("w/<slug:slug>/changes/", live.changes, name="changes"),
    path("w/<slug:slug>/changes/navigation/", live.live_navigation, name="live-navigation"),
]
