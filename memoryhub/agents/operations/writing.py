"""How agents' operations write: in one transaction, in which nothing in their workspace can be forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from django.db import transaction

from memoryhub.agents.api_tokens import Caller
from memoryhub.lib.content_check.precheck import prechecked
from memoryhub.lib.database import db_retry
from sessions_app.services.workspaces import share_workspace

P = ParamSpec("P")
T = TypeVar("T")
Operation = Callable[Concatenate[Caller, P], T]


def writes(operation: Operation[P, T]) -> Operation[P, T]:
    """Decorate an operation that leaves out what was forgotten: until its end, nothing else can be.

    It runs again after a lock error.
    """

    @wraps(operation)
    @db_retry.retried
    @transaction.atomic
    def run(caller: Caller, /, *args: P.args, **kwargs: P.kwargs) -> T:
        share_workspace(caller.workspace.pk)
        return operation(caller, *args, **kwargs)

    return run


def writes_checked(operation: Operation[P, T]) -> Operation[P, T]:
    """Decorate as ``writes`` does, and let the content check read the texts before: that blocks no other writers."""
    write = writes(operation)

    @wraps(operation)
    def run(caller: Caller, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with prechecked(_texts([args, kwargs])):
            return write(caller, *args, **kwargs)

    return run


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif is_dataclass(value) and not isinstance(value, type):
        yield from _texts(asdict(value))
    elif isinstance(value, Mapping):
        yield from _texts(list(value.values()))
    elif isinstance(value, Sequence):
        for one in value:
            yield from _texts(one)
