"""When embedding runs start, and what limits or stops them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from knowledge_app.models import Observation, SemanticGraph, Term
from memoryhub.graph import embedding_run
from memoryhub.graph.building import store_batch
from memoryhub.graph.embedding_run import outlook, request_embedding, request_if_due, request_where_due
from memoryhub.lib.llm import ModelRefused
from memoryhub.runs.executing import execute
from sessions_app.models import Run, Workspace
from sessions_app.services.audit import By
from sessions_app.services.compressing.model_choice import embedding_settings_for
from sessions_app.services.runs import cancel_run
from tests.embedder import embed
from tests.graph.test_embedding import TEXTS, observe
from tests.hub import NOW, PERSON, raises_code

pytestmark = pytest.mark.django_db


def test_automatic_runs_start_only_after_changes(workspace, embedder):
    assert request_if_due(workspace, NOW) is None
    observe(workspace, *TEXTS)

    run = request_if_due(workspace, timezone.now())
    assert request_if_due(workspace, timezone.now()) is None
    execute(run.pk, now=timezone.now)
    assert request_if_due(workspace, timezone.now()) is None

    Observation.objects.filter(uid="o0").update(content="an edit", updated_at=NOW + timedelta(minutes=1))
    assert request_if_due(workspace, timezone.now()) is not None


def test_after_a_cancel_automatic_runs_wait_for_changes(workspace, embedder):
    observe(workspace, *TEXTS)
    cancel_run(request_if_due(workspace, timezone.now()), by=By(PERSON, timezone.now()))

    assert request_if_due(workspace, timezone.now()) is None
    observe(workspace, "news")
    assert request_if_due(workspace, timezone.now()) is not None


def test_a_sweep_requests_runs_where_a_provider_is_set(workspace, embedder, settings):
    other = Workspace.objects.create(slug="off", name="Off", embedding_provider="none")
    unkept = Workspace.objects.create(slug="unkept", name="Unkept", persist_memory=False)
    for each in (workspace, other, unkept):
        observe(each, *TEXTS)

    assert [run.workspace for run in request_where_due(timezone.now())] == [workspace]
    settings.MEMORYHUB_EMBEDDING_PROVIDER = "none"
    Run.objects.all().delete()
    assert request_where_due(timezone.now()) == []
    Workspace.objects.filter(pk=other.pk).update(embedding_provider="ollama")
    assert [run.workspace for run in request_where_due(timezone.now())] == [other]


def test_a_sweep_s_cost_does_not_depend_on_the_number_of_texts(workspace, embedder, django_assert_num_queries):
    observe(workspace, *TEXTS)
    execute(request_if_due(workspace, timezone.now()).pk, now=timezone.now)

    with django_assert_num_queries(6 + 3):  # the hub's settings are read for each decision
        assert request_where_due(timezone.now()) == []


def test_a_run_ends_at_the_daily_token_limit_and_resumes_the_next_day(workspace, embedder):
    Workspace.objects.update(daily_token_budget=400)
    observe(workspace, *(f"word{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(70)))
    embedder.spoil = lambda body: body | {"usage": {"prompt_tokens": 395}}
    workspace.refresh_from_db()

    run = embed(workspace)

    assert run.status == "done"
    assert run.proposal["goes_on"] is True
    successor = Run.objects.exclude(pk=run.pk).get()
    assert successor.status == "queued"
    tomorrow = timezone.now() + timedelta(days=1)
    assert successor.not_before.date() == tomorrow.date()
    assert request_if_due(workspace, timezone.now()) is None
    done = execute(successor.pk, now=lambda: tomorrow)
    assert done.status == "done"
    assert not Term.objects.filter(fingerprint="").exists()


def test_no_request_is_made_without_tokens_left(workspace, embedder):
    Workspace.objects.update(daily_token_budget=100)
    workspace.refresh_from_db()
    Run.objects.create(
        workspace=workspace, kind="consolidation", status="done", prompt_tokens=100, started_at=timezone.now()
    )
    observe(workspace, *TEXTS)

    assert request_if_due(workspace, timezone.now()) is None
    run = embed(workspace)
    assert run.status == "queued"
    assert "waits for tomorrow" in run.stage
    assert embedder.requests == []


def test_runs_of_one_workspace_do_not_overlap(workspace, embedder):
    observe(workspace, *TEXTS)
    Run.objects.create(workspace=workspace, kind="embedding", status="running", lease_owner="x", fencing_number=1)

    run = embed(workspace)

    assert run.status == "queued"
    assert "waits for run" in run.stage
    assert embedder.requests == []


def test_a_cancelled_run_discards_the_reply(workspace, embedder):
    observe(workspace, *TEXTS)
    run = request_embedding(workspace, by=By(PERSON, timezone.now()))
    embedder.before = lambda: None

    def cancel(*_args):
        Run.objects.filter(pk=run.pk).update(status="cancelled")
        return store_batch(*_args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedding_run, "store_batch", cancel)
        execute(run.pk, now=timezone.now)

    assert Run.objects.get().status == "cancelled"
    assert not Term.objects.exclude(fingerprint="").exists()
    assert not SemanticGraph.objects.exists()


def test_without_a_provider_the_error_names_the_setting(workspace):
    with raises_code("model_not_set", match="MEMORYHUB_EMBEDDING_PROVIDER"):
        request_embedding(workspace, by=By(PERSON, NOW))
    assert outlook(workspace).settings is None


def test_a_provider_without_embeddings_is_never_called(workspace, settings):
    settings.MEMORYHUB_EMBEDDING_PROVIDER = "anthropic"
    observe(workspace, *TEXTS)

    with pytest.raises(ModelRefused, match="Use voyage"):
        request_embedding(workspace, by=By(PERSON, NOW))
    assert request_if_due(workspace, NOW) is None
    assert "Use voyage" in outlook(workspace).refusal


def test_a_queued_run_does_nothing_if_embeddings_are_turned_off(workspace, embedder):
    observe(workspace, *TEXTS)
    run = request_embedding(workspace, by=By(PERSON, timezone.now()))
    Workspace.objects.update(embedding_provider="none")

    assert execute(run.pk, now=timezone.now).proposal == {"nothing_due": "Embeddings are switched off."}
    assert not Term.objects.exists()


def test_the_estimate_shows_waiting_words_and_total_cost(workspace, embedder, settings):
    settings.MEMORYHUB_LLM_PRICES = "tiny=100000/0"
    observe(workspace, *TEXTS)
    embed(workspace)
    Term.objects.create(workspace=workspace, text="new")

    found = outlook(workspace)

    assert (found.terms, found.waiting) == (10, 1)
    assert found.tokens >= 10
    assert float(found.cost) == pytest.approx(found.tokens / 10)


class TestWhoIsAsked:
    """The environment's key is only sent to the environment's address."""

    @pytest.fixture(autouse=True)
    def _hub(self, settings):
        settings.MEMORYHUB_EMBEDDING_PROVIDER = "openai"
        settings.MEMORYHUB_EMBEDDING_API_KEY = "sk-hub"
        settings.MEMORYHUB_PRIVATE_HOSTS = frozenset({"10.0.0.5:80"})

    def asked(self, **values) -> tuple[str, str, str]:
        found = embedding_settings_for(Workspace(**values))
        return found.base_url, found.model, found.api_key

    def test_the_hub_by_default(self):
        assert self.asked() == ("https://api.openai.com/v1", "text-embedding-3-small", "sk-hub")

    def test_the_workspaces_own_model_at_the_hubs_address(self):
        assert self.asked(embedding_model="text-embedding-3-large")[1:] == ("text-embedding-3-large", "sk-hub")

    def test_another_provider_gets_no_key(self, settings):
        settings.MEMORYHUB_EMBEDDING_MODEL = "text-embedding-3-large"
        assert self.asked(embedding_provider="voyage") == ("https://api.voyageai.com/v1", "voyage-2", "")

    def test_another_address_gets_no_key(self):
        assert self.asked(embedding_base_url="https://else.example/v1")[2] == ""

    def test_the_environments_own_address_is_allowed_inside_and_no_other(self, settings):
        settings.MEMORYHUB_EMBEDDING_BASE_URL = "http://127.0.0.1:11434/v1"
        found = embedding_settings_for(Workspace())
        assert found.allowed == {"10.0.0.5:80", "127.0.0.1:11434"}

    def test_ollama_on_this_machine_is_the_environments_to_allow(self):
        assert embedding_settings_for(Workspace(embedding_provider="ollama")).allowed == {
            "10.0.0.5:80",
            "api.openai.com:443",
        }

    def test_none_switches_it_off(self, settings):
        assert embedding_settings_for(Workspace(embedding_provider="none")) is None
        settings.MEMORYHUB_EMBEDDING_PROVIDER = ""
        assert embedding_settings_for(Workspace()) is None
