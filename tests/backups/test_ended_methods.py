"""Ways to sign in, webhooks, folders and connections to models that ended since a backup don't come back with it."""

from __future__ import annotations

import shutil

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from memoryhub.accounts import oidc, second_factor
from memoryhub.backups.revocations import apply_revocations, read_revocations
from memoryhub.models import Identity, RecoveryCode, SecondFactor, StoredSetting
from memoryhub.sync.source_folders import follow_folder, remove_folder
from sessions_app.models import Membership, SourceFolder, Webhook, Workspace
from sessions_app.services.audit import Actor, By
from sessions_app.services.stored_settings import hub_settings, save_hub_settings
from sessions_app.services.webhooks import add_webhook, remove_webhook
from sessions_app.services.workspaces import save_settings
from tests.accounts.test_second_factor import app_code
from tests.backups.databases import ON_POSTGRES, back_up
from tests.hub import by

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        ON_POSTGRES and not shutil.which("pg_dump"), reason="PostgreSQL's client programs are missing"
    ),
    pytest.mark.usefixtures("home"),
]
ISSUER = "https://login.example.org"
NAMES = ("olga", "edda", "frank", "gina")


def person(name: str) -> User:
    return User.objects.get(username=name)


def proved(subject: str, email: str = "") -> oidc.Proved:
    return oidc.Proved(ISSUER, subject, email, "")


def turn_on(name: str) -> tuple[str, list[str]]:
    secret = second_factor.new_secret()
    return secret, second_factor.turn_on(person(name), secret, 0, keep=None, by=by())


def accepts(name: str, code: str) -> bool:
    return second_factor.use_code(person(name), code, by=By(Actor("person", name), timezone.now()))


def feed(workspace: Workspace, label: str) -> None:
    SourceFolder.objects.create(workspace=workspace, label=label, path=f"/{label}", layout="grip", is_followed=True)


@pytest.fixture
def people(workspace):
    for name in NAMES:
        User.objects.create_user(name, email=f"{name}@example.org", is_superuser=name == "olga")


@pytest.fixture
def back(people, hub, tmp_path):
    """Return a function that backs up, changes the hub, restores the backup, and returns the output."""

    def go(change) -> str:
        made = back_up(tmp_path / "out", timezone.now())
        hub.restore(made)
        with hub.use():
            change()
        return hub.restore(made)

    return go


@pytest.mark.slow
def test_a_replaced_second_factor_and_used_codes_do_not_come_back(back, hub):
    old_secret, codes = turn_on("frank")
    new = {}

    def change():
        assert accepts("frank", codes[0])
        second_factor.reset(person("frank"), by=by())
        new["secret"], new["codes"] = turn_on("frank")

    output = back(change)

    assert "again: the two-factor authentication of frank" in output
    with hub.use():
        assert not accepts("frank", app_code(old_secret))
        assert not any(accepts("frank", code) for code in codes)
        assert accepts("frank", app_code(new["secret"]))
        assert accepts("frank", new["codes"][0])


@pytest.mark.slow
def test_a_used_recovery_code_stays_used_and_the_others_work(back, hub):
    _, codes = turn_on("frank")

    output = back(lambda: accepts("frank", codes[0]))

    assert "again: recovery codes of frank" in output
    with hub.use():
        assert not accepts("frank", codes[0])
        assert accepts("frank", codes[1])


@pytest.mark.slow
def test_a_second_factor_that_was_turned_on_or_off_since_is_so_again(back, hub):
    turn_on("frank")

    def change():
        second_factor.reset(person("frank"), by=by())
        turn_on("gina")

    back(change)

    with hub.use():
        assert list(SecondFactor.objects.values_list("user__username", flat=True)) == ["gina"]
        assert set(RecoveryCode.objects.values_list("user__username", flat=True)) == {"gina"}


@pytest.mark.slow
def test_nothing_is_named_if_nothing_ended(back, workspace):
    turn_on("frank")
    oidc.connect(person("edda"), proved("e-1"), by=by())
    add_webhook(workspace, "https://1.1.1.1/hook", [], allowed=(), by=by())
    feed(workspace, "two")
    save_hub_settings({"MEMORYHUB_ACCESS_DAYS": 400}, by=by())

    output = back(lambda: turn_on_and_off("gina"))

    assert "again" not in output
    assert "Not re-applied" not in output


def turn_on_and_off(name: str) -> None:
    turn_on(name)
    second_factor.reset(person(name), by=by())


@pytest.mark.slow
def test_a_disconnected_sign_in_ends_again_and_its_address_connects_nobody(back, hub):
    oidc.connect(person("edda"), proved("e-1", "edda@example.org"), by=by())

    def change():
        oidc.disconnect(person("edda"), by=by())
        oidc.connect(person("frank"), proved("f-1", "frank@example.org"), by=by())  # not in the backup
        oidc.disconnect(person("frank"), by=by())

    output = back(change)

    assert "again: the sign-in of edda with login.example.org" in output
    with hub.use():
        for name in ("edda", "frank"):
            for subject in (f"{name[0]}-1", "another"):
                assert oidc.find_person(proved(subject, f"{name}@example.org"), timezone.now()) is None
        assert not Identity.objects.filter(ended_at=None).exists()


@pytest.mark.slow
def test_an_identity_that_belongs_to_somebody_else_now_does_not_return(back, hub):
    oidc.connect(person("edda"), proved("s"), by=by())

    def change():
        oidc.disconnect(person("edda"), by=by())
        oidc.connect(person("frank"), proved("s"), by=by())

    back(change)

    with hub.use():
        assert oidc.find_person(proved("s"), timezone.now()) is None


@pytest.mark.slow
def test_sign_ins_that_are_connected_stay(back, hub):
    oidc.connect(person("edda"), proved("e-1"), by=by())

    back(lambda: oidc.connect(person("frank"), proved("f-1"), by=by()))

    with hub.use():
        assert oidc.find_person(proved("e-1"), timezone.now()) == person("edda")


@pytest.mark.slow
@pytest.mark.postgres
def test_removed_webhooks_do_not_come_back(back, hub, workspace):
    for name in ("removed", "disabled", "kept"):
        add_webhook(workspace, f"https://1.1.1.1/{name}", [], allowed=(), by=by())

    def change():
        remove_webhook(Webhook.objects.get(url__endswith="removed"), by=by())
        Webhook.objects.filter(url__endswith="disabled").update(is_enabled=False)

    output = back(change)

    assert "again: the webhook to 1.1.1.1" in output
    with hub.use():
        found = {hook.url.rpartition("/")[2]: hook.is_enabled for hook in Webhook.objects.all()}
        assert found == {"disabled": False, "kept": True}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backed_up", "present", "expected"),
    [("accept", "hold_all", "hold_all"), ("hold_all", "accept", "hold_all"), ("accept", "accept", "accept")],
)
def test_the_stricter_of_two_policies_counts(backed_up, present, expected, back, hub, workspace):
    Workspace.objects.update(agent_changes=backed_up)

    output = back(lambda: save_settings(Workspace.objects.get(pk=workspace.pk), {"agent_changes": present}, by=by()))

    assert ("agent_changes=hold_all" in output) == (expected != backed_up)
    with hub.use():
        assert Workspace.objects.get(pk=workspace.pk).agent_changes == expected


@pytest.mark.slow
def test_settings_of_a_workspace_are_the_stricter_ones_and_its_models_the_present_ones(back, hub, workspace):
    before = {
        "auto_extract": True,
        "dense_search": False,
        "daily_token_budget": None,
        "model_base_url": "https://1.1.1.1/v1",
        "embedding_provider": "openai",
    }
    Workspace.objects.update(**before)
    now = before | {
        "auto_extract": False,
        "dense_search": True,
        "daily_token_budget": 500,
        "model_base_url": "",
        "embedding_provider": "",
    }

    output = back(lambda: save_settings(Workspace.objects.get(pk=workspace.pk), now, by=by()))

    assert f"again: {workspace.slug}: daily_token_budget=500" in output
    with hub.use():
        assert Workspace.objects.values(*now).get(pk=workspace.pk) == now | {"dense_search": False}


@pytest.mark.slow
@pytest.mark.postgres
def test_folders_that_were_removed_or_are_not_followed_any_more_stay_so(back, hub, workspace):
    for label in ("removed", "unfollowed", "kept"):
        SourceFolder.objects.create(
            workspace=workspace, label=label, path=f"/{label}", layout="grip", is_followed=True
        )

    def change():
        remove_folder(SourceFolder.objects.get(label="removed"), by=by())
        follow_folder(SourceFolder.objects.get(label="unfollowed"), is_followed=False, by=by())

    output = back(change)

    assert f"again: the folder removed of {workspace.slug}" in output
    assert "the folder kept" not in output
    with hub.use():
        found = {row.label: (row.is_followed, row.removed_at is None) for row in SourceFolder.objects.all()}
        assert found == {"removed": (False, False), "unfollowed": (False, True), "kept": (True, True)}


@pytest.mark.slow
def test_the_settings_of_the_hub_stay_as_they_are(back, hub):
    model = {"MEMORYHUB_LLM_BASE_URL": "https://1.1.1.1/v1", "MEMORYHUB_LLM_API_KEY": "sk-secret"}
    save_hub_settings(model | {"MEMORYHUB_ACCESS_DAYS": 400}, by=by())
    unset = dict.fromkeys(model, "")

    output = back(
        lambda: save_hub_settings(unset | {"MEMORYHUB_ACCESS_DAYS": 30, "MEMORYHUB_BACKUP_KEEP": 3}, by=by())
    )

    assert "again: the setting MEMORYHUB_LLM_API_KEY" in output
    assert "sk-secret" not in output
    with hub.use():
        assert hub_settings().values["MEMORYHUB_LLM_API_KEY"] == ""
        stored = dict(StoredSetting.objects.values_list("name", "value"))
        assert stored == {"MEMORYHUB_ACCESS_DAYS": "30", "MEMORYHUB_BACKUP_KEEP": "3"}


@pytest.mark.slow
def test_another_hub_gets_the_settings_of_the_backup(people, hub, tmp_path):
    save_hub_settings({"MEMORYHUB_ACCESS_DAYS": 400}, by=by())
    made = back_up(tmp_path / "out", timezone.now())
    hub.restore(made)
    with hub.use():
        User.objects.update(date_joined=timezone.now())
        StoredSetting.objects.all().delete()

    hub.restore(made)

    with hub.use():
        assert StoredSetting.objects.get().value == "400"


@pytest.mark.slow
@pytest.mark.postgres
def test_what_an_older_database_has_no_tables_for_is_named(people, hub, tmp_path):
    turn_on("frank")
    oidc.connect(person("edda"), proved("e-1"), by=by())
    oidc.disconnect(person("edda"), by=by())
    made = back_up(tmp_path / "out", timezone.now())
    hub.restore(made)
    known = read_revocations(hub.database)
    with hub.database.cursor() as cursor:
        for table in ("recoverycode", "secondfactor", "identity"):
            cursor.execute(f"DROP TABLE memoryhub_{table}")

    again = apply_revocations(hub.database, known)

    assert again.unapplied == [
        "the two-factor authentication of frank",
        "the sign-in of edda with login.example.org",
    ]
    assert again.ended == []
    assert "again" not in hub.restore(made)  # nor does such a database end anything


@pytest.mark.slow
def test_a_newer_backup_is_left_as_it_is(people, hub, tmp_path, workspace):
    first = back_up(tmp_path / "out", timezone.now())
    Membership.objects.create(workspace=workspace, user=person("frank"), role="editor")
    turn_on("frank")
    oidc.connect(person("edda"), proved("e-1"), by=by())
    add_webhook(workspace, "https://1.1.1.1/hook", [], allowed=(), by=by())
    second = back_up(tmp_path / "out", timezone.now())
    hub.restore(second)
    hub.restore(first)

    assert "again: " not in hub.restore(second)

    with hub.use():
        assert second_factor.has_second_factor(person("frank"))
        assert oidc.find_person(proved("e-1"), timezone.now()) == person("edda")
        assert Webhook.objects.count() == 1
