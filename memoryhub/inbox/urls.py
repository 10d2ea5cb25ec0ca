from django.urls import path

from memoryhub.inbox.views import dismissals

urlpatterns = [
    path("dismiss/", dismissals.dismiss, name="dismiss"),
    path("dismiss/undo/", dismissals.undo_dismissal, name="undo-dismissal"),
]
