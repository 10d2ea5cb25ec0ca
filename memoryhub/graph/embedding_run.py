"""Embedding runs: request missing embeddings of terms, relate the terms, and embed rows for semantic search.

Stored texts are embedded when they change, never during a search.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from math import ceil

from django.db import transaction
from django.db.models import Count, Q, QuerySet, Sum
from django.db.models.functions import Length
from django.utils.translation import gettext, gettext_noop

from knowledge_app.models import RowVector, SemanticGraph, Term
from memoryhub.graph.building import (
    Embeddings,
    Seen,
    load_space,
    make_terms,
    record_graph,
    states_of,
    store_batch,
    waiting_terms,
)
from memoryhub.graph.nearest import Space
from memoryhub.graph.neighbours import fingerprint_of
from memoryhub.graph.row_embedding import CHARS_PER_TOKEN, add_row_states
from memoryhub.graph.row_vectors import (
    RowEmbeddings,
    drop_unwanted_vectors,
    newest_vector,
    rows_for,
    store_vectors,
    sweep_vectors,
    waiting_rows,
)
from memoryhub.lib.database import db_retry
from memoryhub.lib.embeddings import EmbeddingBatch, EmbeddingSettings, embed, provider_error
from memoryhub.lib.errors import LimitExceeded
from memoryhub.lib.llm import ModelRefused
from memoryhub.lib.tokens import count_tokens
from sessions_app.models import Run, Workspace
from sessions_app.models.runs import LIVE_STATUSES
from sessions_app.services.audit import Actor, By, record
from sessions_app.services.compressing.model_choice import cost_of, embedding_settings_for, workspaces_with_embeddings
from sessions_app.services.compressing.token_budget import budget_left, midnight_after, within_budget
from sessions_app.services.runs import finish_run, postpone_run, renew_lease, retry_run
from sessions_app.services.workspace_runs import latest_run, request_workspace_run

UPKEEP = Actor("run", "automatic embedding")
WORKER = Actor("run", "the worker")
TURN = timedelta(seconds=10)  # between checks whether another embedding run of the workspace has finished
CARRIED = ("rebuild", "after", "vectors_after", "seen")  # before the run that continues tomorrow
MOST_LENGTHS = 20  # of one model's embeddings, as returned by a server


@dataclass(frozen=True)
class Outlook:
    """The estimated work of embedding a workspace: all terms, pending terms, and the tokens and US dollars for all.

    ``settings``: None if the graph is switched off. ``refusal``: why it can't be built.
    """

    settings: EmbeddingSettings | None
    refusal: str
    terms: int
    waiting: int
    tokens: int
    cost: Decimal | None


def outlook(workspace: Workspace) -> Outlook:
    """Estimate the work of embedding a workspace now. At most three queries."""
    settings = embedding_settings_for(workspace)
    waiting = Q() if settings is None else ~Q(fingerprint=_fingerprint(settings, workspace.pk))
    terms = Term.objects.filter(workspace=workspace).aggregate(
        terms=Count("pk"), waiting=Count("pk", filter=waiting), characters=Sum(Length("text"))
    )
    tokens = max(terms["terms"], (terms["characters"] or 0) // CHARS_PER_TOKEN)
    return Outlook(
        settings=settings,
        refusal=provider_error(settings.provider) if settings else "",
        terms=terms["terms"],
        waiting=terms["waiting"] if settings else 0,
        tokens=tokens,
        cost=cost_of(settings.model, tokens, 0) if settings else None,
    )


def request_embedding(workspace: Workspace, *, rebuild: bool = False, once: bool = False, by: By) -> Run:
    """Request the missing embeddings, or all of them again; a parked run is resumed.

    ``once``: started by a command, which shows the error itself. Raises ModelRefused.
    """
    settings = embedding_settings_for(workspace)
    if settings is None:
        raise ModelRefused(
            gettext(
                "No embedding provider is set. Set one in the settings of the workspace or the hub, or in "
                "MEMORYHUB_EMBEDDING_PROVIDER."
            ),
            code="model_not_set",
        )
    if refusal := provider_error(settings.provider):
        raise ModelRefused(refusal)
    wishes: dict[str, object] = {"seen": _seen(workspace, settings)}
    wishes |= {"rebuild": True, "after": 0} if rebuild else {}
    wishes |= {"once": True} if once else {}
    last = latest_run(workspace, Run.Kind.EMBEDDING)
    if last and last.status == Run.Status.PARKED:
        return retry_run(last, by=by, **wishes)
    run, _ = request_workspace_run(workspace, Run.Kind.EMBEDDING, options=wishes, by=by)
    return run


def request_where_due(now: datetime) -> list[Run]:
    """Request automatic embedding for every workspace that has changed since its last run."""
    drop_unwanted_vectors()
    kept = workspaces_with_embeddings().filter(persist_memory=True).order_by("pk")
    able = [workspace for workspace in kept if _can_embed(workspace)]
    states = add_row_states(states_of([workspace.pk for workspace in able]), able)
    return [run for workspace in able if (run := _request_if_changed(workspace, states[workspace.pk], now))]


def request_if_due(workspace: Workspace, now: datetime) -> Run | None:
    """Request automatic embedding if the texts, terms or provider have changed since the last run.

    Not while a run is queued or running, nor while a parked run has the same provider and model, nor if nothing has
    changed since a person cancelled or dismissed a run.
    """
    if not workspace.persist_memory or not _can_embed(workspace):
        return None
    return _request_if_changed(workspace, _state_of(workspace), now)


def _can_embed(workspace: Workspace) -> bool:
    settings = embedding_settings_for(workspace)
    return settings is not None and not provider_error(settings.provider)


def _request_if_changed(workspace: Workspace, state: Seen, now: datetime) -> Run | None:
    settings = embedding_settings_for(workspace)
    if settings is None or not (state["texts"] or state["terms"] or "rows" in state):
        return None
    seen = state | {"of": _made_by(settings)}
    last = latest_run(workspace, Run.Kind.EMBEDDING)
    if last and not _has_news(last, seen):
        return None
    if budget_left(workspace, now) == 0:
        return None
    if last and last.status == Run.Status.PARKED:
        return retry_run(last, by=By(UPKEEP, now), seen=seen)
    return request_workspace_run(workspace, Run.Kind.EMBEDDING, options={"seen": seen}, by=By(UPKEEP, now))[0]


def _has_news(last: Run, seen: Seen) -> bool:
    if last.status in LIVE_STATUSES:
        return False
    if last.options.get("once") and last.status != Run.Status.DONE:
        return True
    before = (last.proposal if last.status == Run.Status.DONE else last.options).get("seen") or {}
    if last.status == Run.Status.PARKED:
        return bool(seen["of"] != before.get("of"))
    return bool(seen != before)


def _seen(workspace: Workspace, settings: EmbeddingSettings) -> Seen:
    return _state_of(workspace) | {"of": _made_by(settings)}


def _state_of(workspace: Workspace) -> Seen:
    return add_row_states(states_of([workspace.pk]), [workspace])[workspace.pk]


def _made_by(settings: EmbeddingSettings) -> str:
    return f"{settings.provider}/{settings.model}"


def _fingerprint(settings: EmbeddingSettings, workspace_id: int) -> str:
    """Return the fingerprint of a workspace's embeddings.

    If the model's number of dimensions isn't known, use that of the graph or of an interrupted run.
    """
    if settings.dimensions:
        return fingerprint_of(settings.provider, settings.model, settings.dimensions)
    graph = SemanticGraph.objects.filter(workspace=workspace_id).first()
    if graph and (graph.provider, graph.model) == (settings.provider, settings.model):
        return fingerprint_of(settings.provider, settings.model, graph.dimensions)
    found: list[str] = []
    for model in (Term, RowVector):
        made = model._default_manager.filter(workspace=workspace_id, fingerprint__startswith=f"{_made_by(settings)}/")
        found += made.order_by("fingerprint").values_list("fingerprint", flat=True).distinct()[:MOST_LENGTHS]
    own = [fingerprint for fingerprint in found if fingerprint.rpartition("/")[0] == _made_by(settings)]
    return own[0] if own else fingerprint_of(settings.provider, settings.model, 0)


def carry_out(run: Run, *, now: Callable[[], datetime]) -> None:
    """Carry out a claimed embedding run. Raises MemoryHubError on failure; finished batches stay."""
    workspace = Workspace.objects.get(pk=run.workspace_id)
    settings = embedding_settings_for(workspace)
    if settings is None:
        with transaction.atomic():
            finish_run(
                run, status=Run.Status.DONE, now=now(), proposal={"nothing_due": "Embeddings are switched off."}
            )
        return
    others = Run.objects.filter(workspace=workspace, kind=run.kind, status=Run.Status.RUNNING, pk__lt=run.pk)
    if other := others.first():
        postpone_run(run, until=now() + TURN, why=f"waits for run {other.pk}")
        return
    run.options["seen"] = _seen(workspace, settings)
    renew_lease(run, stage=gettext_noop("reading the texts"))
    make_terms(workspace, now())
    work = _Work(run, workspace, settings, now)
    if work.embed_all() and work.embed_rows():
        work.finish()


class _Work:
    """A running embedding run: its space of terms and its progress."""

    def __init__(
        self, run: Run, workspace: Workspace, settings: EmbeddingSettings, now: Callable[[], datetime]
    ) -> None:
        self.run, self.workspace, self.settings, self.now = run, workspace, settings, now
        self.fingerprint = _fingerprint(settings, workspace.pk)
        self.space: Space | None = None
        self.embedded = self.rows = 0

    def embed_all(self) -> bool:
        """Embed terms in batches; False if the day's budget is used up and another run has to continue."""
        while batch := list(self._waiting()[: self.settings.batch_size]):
            size = self.settings.batch_size
            done, left = self.embedded // size, self._waiting().count()
            if not self._may_ask([term.text for term in batch]):
                return False
            renew_lease(
                self.run,
                stage=gettext_noop("asking for embeddings"),
                steps_done=done,
                steps_total=done + ceil(left / size),
            )
            self._embed(batch)
        return True

    def _waiting(self) -> QuerySet[Term]:
        after = self.run.options.get("after") if self.run.options.get("rebuild") else None
        return waiting_terms(self.workspace.pk, self.fingerprint, after=after).only("pk", "text")

    def embed_rows(self) -> bool:
        """Embed rows in batches if semantic search is on; False as in ``embed_all``.

        Outdated vectors are removed first. Stops if the setting is switched off meanwhile.
        """
        if not self.workspace.dense_search:
            return True
        sweep_vectors(self.workspace.pk)
        waiting = self._waiting_rows()
        while waiting and Workspace.objects.filter(pk=self.workspace.pk, dense_search=True).exists():
            size, fingerprint = self.settings.batch_size, self.fingerprint
            batch = rows_for(self.workspace.pk, waiting[:size])
            waiting = waiting[size:]
            if not batch:
                continue
            if not self._may_ask([row.text for row in batch]):
                return False
            done, left = ceil(self.rows / size), ceil(len(waiting) / size)
            renew_lease(
                self.run,
                stage=gettext_noop("asking for embeddings of rows"),
                steps_done=done,
                steps_total=done + left + 1,
            )
            answer = self._ask([row.text for row in batch])
            made = RowEmbeddings(batch, answer.rows, self.fingerprint)
            store_vectors(self.run, made)
            self.rows += len(batch)
            if self.fingerprint != fingerprint:
                waiting = self._waiting_rows()
        return True

    def _waiting_rows(self) -> list[tuple[str, int]]:
        if self.run.options.get("rebuild"):
            self.run.options.setdefault("vectors_after", newest_vector())
        after = self.run.options.get("vectors_after", 0)
        return waiting_rows(self.workspace.pk, self.fingerprint, after=after)

    def _may_ask(self, texts: Sequence[str]) -> bool:
        """Tell whether today's budget suffices. A run that has used tokens ends here and another one continues.

        Otherwise tokens recorded on one day would count against the next.
        """
        messages = [{"content": text} for text in texts]
        if not (self.embedded or self.rows or self.run.prompt_tokens):
            return within_budget(self.run, self.workspace, messages, self.now())
        left = budget_left(self.workspace, self.now())
        needed = sum(count_tokens(message["content"]) for message in messages)
        if left is None or needed <= left:
            return True
        if self.run.options.get("once"):
            raise LimitExceeded(
                "Not all of it: today's tokens are used up. Raise the budget in the settings.", code="budget_spent"
            )
        self._go_on_tomorrow()
        return False

    @db_retry.retried
    @transaction.atomic
    def _go_on_tomorrow(self) -> None:
        now = self.now()
        self._finish(now, self._proposal() | {"goes_on": True})
        options = {name: value for name, value in self.run.options.items() if name in CARRIED}
        request_workspace_run(
            self.workspace, Run.Kind.EMBEDDING, options=options, by=By(UPKEEP, now), not_before=midnight_after(now)
        )

    def _ask(self, texts: Sequence[str]) -> EmbeddingBatch:
        """Request the embeddings of texts; all replies must have the same number of dimensions."""
        answer = embed(self.settings, texts)
        size = answer.rows.shape[1]
        self.settings = replace(self.settings, dimensions=size)
        fingerprint = fingerprint_of(self.settings.provider, self.settings.model, size)
        if fingerprint != self.fingerprint:
            self.fingerprint, self.space = fingerprint, None
        self.run.model = self.settings.model
        self.run.prompt_tokens += answer.prompt_tokens or sum(count_tokens(text) for text in texts)
        self.run.cost = cost_of(self.settings.model, self.run.prompt_tokens, 0)
        return answer

    def _embed(self, batch: list[Term]) -> None:
        answer = self._ask([term.text for term in batch])
        if self.space is None:
            self.space = load_space(self.workspace.pk, self.fingerprint)
        keys = [term.pk for term in batch]
        if self.run.options.get("rebuild"):
            self.run.options["after"] = max(self.run.options.get("after", 0), keys[-1])
        changed = self.space.place(keys, answer.rows)
        made = Embeddings(keys, answer.rows, self.fingerprint)
        store_batch(self.run, made, self.space, changed)
        self.embedded += len(batch)

    @db_retry.retried
    @transaction.atomic
    def finish(self) -> None:
        """Record the graph's model and finish the run."""
        now = self.now()
        proposal = self._proposal()
        if not (self.embedded or self.rows or self.run.prompt_tokens):
            proposal["nothing_due"] = "Every word has its embedding."
        if self.embedded or self.rows or self._is_news():
            record_graph(
                self.workspace,
                provider=self.settings.provider,
                model=self.settings.model,
                base_url=self.settings.base_url,
                dimensions=self._dimensions(),
                now=now,
            )
            words = f"The graph has {self.embedded:,} new embeddings by {self.settings.model}"
            words += f", and {self.rows:,} rows have theirs" if self.rows else ""
            record(By(WORKER, now), "graph.built", "run", self.run.pk, words, workspace=self.workspace)
        self._finish(now, proposal)

    def _proposal(self) -> dict[str, object]:
        terms = states_of([self.workspace.pk])[self.workspace.pk]["terms"]
        seen = self.run.options["seen"] | {"terms": terms, "of": _made_by(self.settings)}
        rows = {"rows": self.rows} if self.rows else {}
        return {"embedded": self.embedded, "terms": sum(terms.values()), "seen": seen} | rows

    def _finish(self, now: datetime, proposal: dict[str, object]) -> None:
        finish_run(self.run, status=Run.Status.DONE, now=now, proposal=proposal)

    def _dimensions(self) -> int:
        return int(self.fingerprint.rpartition("/")[2])

    def _is_news(self) -> bool:
        """Tell whether the model recorded for an up-to-date graph has to be changed."""
        graph = SemanticGraph.objects.filter(workspace=self.workspace).first()
        mine = (self.settings.provider, self.settings.model, self._dimensions())
        return bool(graph and self._dimensions() and (graph.provider, graph.model, graph.dimensions) != mine)
