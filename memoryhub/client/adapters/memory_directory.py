"""The commands of Anthropic's memory tool, over key-values of the hub instead of files.

A file ``/memories/notes.md`` is the value of the key ``memories/notes.md``; a deleted one is an empty value. Commands
and texts are those of ``anthropic.lib.tools.BetaAbstractMemoryTool``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memoryhub.client.errors import MemoryHubError, NotFound
from memoryhub.client.hub import MemoryHub


class CommandError(Exception):
    """A command that can't be executed. The model reads the message."""


class MemoryDirectory:
    """Executes commands below ``/memories``. Needs the scopes read and edit."""

    def __init__(self, hub: MemoryHub) -> None:
        self._hub = hub

    def run(self, command: Mapping[str, Any]) -> str:
        """Execute a command: view, create, str_replace, insert, delete or rename. Raises CommandError."""
        name = command.get("command")
        if name not in ("view", "create", "str_replace", "insert", "delete", "rename"):
            raise CommandError(f"Unknown command: {name}")
        try:
            return str(
                getattr(self, f"_{name}")(**{key: value for key, value in command.items() if key != "command"})
            )
        except (AttributeError, TypeError, ValueError, MemoryHubError) as error:  # models send any arguments
            raise CommandError(str(error)) from error

    def _view(self, path: str, view_range: list[int] | None = None) -> str:
        text = self._text(path)
        if text is None:
            paths = [f"/{key}" for key in self._files(path)]
            if not paths and _key(path) != "memories":
                raise CommandError(f"The path {path} does not exist. Please provide a valid path.")
            return "\n".join([f"Here're the files and directories in {path}:", *paths])
        lines = list(enumerate(text.split("\n"), 1))
        first, last = view_range or (1, -1)
        shown = lines[max(0, first - 1) : None if last == -1 else last]
        numbered = [f"{number:6}\t{line}" for number, line in shown]
        return "\n".join([f"Here's the content of {path} with line numbers:", *numbered])

    def _create(self, path: str, file_text: str) -> str:
        if self._text(path) is not None:
            raise CommandError(f"File {path} already exists")
        return self._write(path, file_text, f"File created successfully at: {path}")

    def _str_replace(self, path: str, old_str: str, new_str: str = "") -> str:
        text = self._existing(path)
        count = text.count(old_str) if old_str else 0
        if count != 1:
            why = "Multiple occurrences of" if count else "There is no"
            raise CommandError(f"No replacement was performed. {why} old_str `{old_str}` in {path}.")
        return self._write(path, text.replace(old_str, new_str), "The memory file has been edited.")

    def _insert(self, path: str, insert_line: int, insert_text: str) -> str:
        lines = self._existing(path).removesuffix("\n").split("\n")
        if not 0 <= insert_line <= len(lines):
            raise CommandError(f"Invalid `insert_line` parameter: {insert_line}. Use 0 to {len(lines)}.")
        lines.insert(insert_line, insert_text.rstrip("\n"))
        return self._write(path, "\n".join(lines) + "\n", f"The file {path} has been edited.")

    def _delete(self, path: str) -> str:
        files = self._files(path)
        if not files:
            raise CommandError(f"The path {path} does not exist")
        if _key(path) == "memories":
            raise CommandError("Cannot delete the /memories directory itself")
        waiting = [key for key in files if self._hub.write(key, "").get("held")]
        return (
            f"{', '.join(waiting)}: a person reviews the deletion first."
            if waiting
            else f"Successfully deleted {path}"
        )

    def _rename(self, old_path: str, new_path: str) -> str:
        if self._files(new_path):
            raise CommandError(f"The destination {new_path} already exists")
        files = self._files(old_path)
        if not files or _key(old_path) == "memories":
            raise CommandError(f"The path {old_path} does not exist")
        targets = {key: _key(new_path) + key.removeprefix(_key(old_path)) for key in files}
        waiting = [new for key, new in targets.items() if self._hub.write(new, self._hub.read(key)).get("held")]
        if waiting:
            return f"{', '.join(waiting)}: a person reviews the new file first. {old_path} stays."
        deleted = self._delete(old_path)
        is_done = deleted == f"Successfully deleted {old_path}"
        return f"Successfully renamed {old_path} to {new_path}" if is_done else f"Copied to {new_path}. {deleted}"

    def _files(self, path: str) -> list[str]:
        """Return the keys of the file at a path, or of the files below it."""
        key = _key(path)
        keys = [key] if self._text(path) is not None else self._hub.keys(f"{key}/")
        return [one for one in keys if self._text(f"/{one}") is not None]

    def _existing(self, path: str) -> str:
        text = self._text(path)
        if text is None:
            raise CommandError(f"The path {path} does not exist. Please provide a valid path.")
        return text

    def _text(self, path: str) -> str | None:
        try:
            return self._hub.read(_key(path)) or None
        except NotFound:
            return None

    def _write(self, path: str, text: str, done: str) -> str:
        written = self._hub.write(_key(path), text or "\n")
        return f"{done} A person reviews it before it can be read." if written.get("held") else done


def _key(path: str) -> str:
    """Return the key of a path. Raises CommandError if it isn't below /memories."""
    parts = path.strip("/").split("/")
    if not path.startswith("/") or parts[0] != "memories" or not {"", ".", ".."}.isdisjoint(parts):
        raise CommandError(f"Path must be below /memories, got: {path}")
    return "/".join(parts)
