"""Accounts and how they sign in, read-only: the pages change them, and keep the last hub operator."""

from importlib import import_module

from django.contrib import admin
from django.contrib.auth.models import Group, User

from memoryhub.account_models import Identity, Passkey, RecoveryCode, SecondFactor
from memoryhub.admin.read_only import ReadOnlyAdmin

import_module("django.contrib.auth.admin")  # registers both, with forms that change passwords
admin.site.unregister([User, Group])


@admin.register(User)
class UserAdmin(ReadOnlyAdmin):
    list_display = ["username", "is_superuser", "is_active", "date_joined", "last_login"]
    list_filter = ["is_superuser", "is_active"]
    search_fields = ["username"]
    ordering = ["username", "id"]
    hidden = ("password", "groups", "user_permissions")


@admin.register(SecondFactor)
class SecondFactorAdmin(ReadOnlyAdmin):
    list_display = ["user", "created_at"]
    list_select_related = ["user"]
    search_fields = ["user__username"]
    hidden = ("secret", "last_step")


@admin.register(RecoveryCode)
class RecoveryCodeAdmin(ReadOnlyAdmin):
    list_display = ["id", "user"]
    list_select_related = ["user"]
    search_fields = ["user__username"]
    hidden = ("code_hash",)


@admin.register(Identity)
class IdentityAdmin(ReadOnlyAdmin):
    list_display = ["user", "issuer", "email", "created_at", "ended_at"]
    list_select_related = ["user"]
    search_fields = ["user__username", "email"]


@admin.register(Passkey)
class PasskeyAdmin(ReadOnlyAdmin):
    """Without the public key and the authenticator's values, which say nothing to people."""

    list_display = ["user", "name", "host", "created_at", "used_at"]
    list_select_related = ["user"]
    search_fields = ["user__username", "name"]
    hidden = ("credential_id", "credential", "handle", "sign_count")
