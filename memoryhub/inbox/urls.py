from django.urls import path

from memoryhub.inbox.views import accept_safe, decided, dismissals, inbox

urlpatterns = [
    path("inbox/", inbox.hub_inbox, name="hub-inbox"),
    path("inbox/decided/", decided.hub_decided, name="hub-decided"),
    path("inbox/decide/", inbox.decide_item, name="decide-item"),
    path("w/<slug:slug>/inbox/", inbox.inbox, name="inbox"),
    path("w/<slug:slug>/inbox/accept-safe/", accept_safe.accept_safe, name="accept-safe"),
    path("w/<slug:slug>/review/decided/", decided.decided_changes, name="decided-changes"),
    path("dismiss/", dismissals.dismiss, name="dismiss"),
    path("dismiss/undo/", dismissals.undo_dismissal, name="undo-dismissal"),
]
