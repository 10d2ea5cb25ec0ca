from django.urls import path

from memoryhub.hygiene import views

urlpatterns = [
    path("w/<slug:slug>/hygiene/", views.desk, name="hygiene"),
    path("w/<slug:slug>/hygiene/scan/", views.scan, name="scan-hygiene"),
    path("w/<slug:slug>/hygiene/progress/", views.progress, name="hygiene-progress"),
    path("w/<slug:slug>/hygiene/dismiss/", views.dismiss, name="dismiss-concerns"),
    path("w/<slug:slug>/hygiene/reopen/", views.reopen, name="reopen-concerns"),
    path("w/<slug:slug>/hygiene/withdraw/", views.withdraw, name="withdraw-concerns"),
    path("w/<slug:slug>/hygiene/keep-first/", views.keep_first, name="keep-first"),
    path("w/<slug:slug>/hygiene/keep-other/", views.keep_other, name="keep-other"),
    path("w/<slug:slug>/hygiene/keep/", views.keep_one, name="keep-one"),
    path("w/<slug:slug>/hygiene/verify/", views.verify, name="verify-concerns"),
    path("w/<slug:slug>/hygiene/review-by/", views.review_by, name="review-concerns"),
]
