"""Accounts, read-only: the page People changes them, ends sign-ins, and keeps the last hub operator."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.models import Group, User

from memoryhub.admin.read_only import ReadOnlyAdmin

for _model in (User, Group):
    if admin.site.is_registered(_model):
        admin.site.unregister(_model)


@admin.register(User)
class UserAdmin(ReadOnlyAdmin):
    list_display = ["username", "is_superuser", "is_active", "date_joined", "last_login"]
    list_filter = ["is_superuser", "is_active"]
    search_fields = ["username"]
    ordering = ["username", "id"]
    hidden = ("password", "groups", "user_permissions")
