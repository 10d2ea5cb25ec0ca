from django.urls import path

from memoryhub.monitoring.views import metrics

urlpatterns = [path("metrics", metrics, name="metrics")]
