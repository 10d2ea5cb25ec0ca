from django.urls import path

from memoryhub.runs.views import bulk, compress_due, held_rows, review, review_bulk, runs

urlpatterns = [
    path("w/<slug:slug>/review/", review.review, name="review"),
    path("w/<slug:slug>/review/decide/", review_bulk.decide_changes, name="decide-changes"),
    path("w/<slug:slug>/review/undo/", review.undo_decisions, name="undo-decisions"),
    path("w/<slug:slug>/review/rows/remove/", held_rows.remove_held_rows, name="remove-held-rows"),
    path("w/<slug:slug>/review/rows/<int:pk>/approve/", held_rows.approve_held_row, name="approve-held-row"),
    path("w/<slug:slug>/review/rows/<int:pk>/remove/", held_rows.remove_held_row, name="remove-held-row"),
    path("w/<slug:slug>/review/<int:pk>/", review.held_change, name="held-change"),
    path("w/<slug:slug>/review/<int:pk>/approve/", review.approve_held_change, name="approve-held-change"),
    path("w/<slug:slug>/review/<int:pk>/reject/", review.reject_held_change, name="reject-held-change"),
    path("w/<slug:slug>/sessions/<int:pk>/consolidate/", runs.consolidate, name="consolidate-session"),
    path("w/<slug:slug>/compress/", compress_due.compress_due, name="compress-due"),
    path("w/<slug:slug>/runs/", runs.run_list, name="runs"),
    path("w/<slug:slug>/runs/consolidate-due/", runs.consolidate_due, name="consolidate-due"),
    path("w/<slug:slug>/runs/edit/", bulk.edit_runs, name="edit-runs"),
    path("w/<slug:slug>/runs/<int:pk>/", runs.run_page, name="run"),
    path("w/<slug:slug>/runs/<int:pk>/cancel/", runs.cancel, name="cancel-run"),
    path("w/<slug:slug>/runs/<int:pk>/retry/", runs.retry, name="retry-run"),
    path("w/<slug:slug>/runs/<int:pk>/fold/", runs.fold_by_rule, name="fold-run"),
    path("w/<slug:slug>/runs/<int:pk>/skip/", runs.skip, name="skip-run"),
    path("w/<slug:slug>/runs/<int:pk>/dismiss/", runs.dismiss, name="dismiss-run"),
    path("w/<slug:slug>/runs/<int:pk>/undo/", runs.undo, name="undo-run"),
    path("w/<slug:slug>/runs/<int:pk>/approve/", runs.approve, name="approve-run"),
    path("w/<slug:slug>/sessions/<int:pk>/compress/", runs.compress, name="compress-session"),
]
