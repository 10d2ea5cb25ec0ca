from django.urls import path

from memoryhub.conversations import views

app_name = "sessions"

urlpatterns = [
    path("sessions/", views.session_list, name="list"),
    path("sessions/<int:pk>/", views.detail, name="detail"),
    path("sessions/<int:pk>/arrivals/", views.arrivals, name="arrivals"),
    path("sessions/<int:pk>/statistics/", views.session_statistics, name="session-statistics"),
    path("entries/<int:pk>/", views.entry, name="entry"),
    path("statistics/", views.statistics, name="statistics"),
]
