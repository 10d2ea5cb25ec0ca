import errno
import hashlib
import json
import os
from pathlib import Path

import pytest

from knowledge_app.services.rows.knowledge_file import EntryEdit, edited_knowledge
from memoryhub.lib.files.safe_folder import Folder
from memoryhub.lib.layouts.documents import document_bytes
from memoryhub.sync import atomic_replace
from memoryhub.sync.atomic_replace import import_quiet_copies, private_names, replace_file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "memory").mkdir()
    made = tmp_path / "memory" / "MEMORY.md"
    made.write_bytes(b"before")
    return made


def replace(file: Path, content: bytes, expected: bytes | None):
    with Folder(file.parent.parent) as folder:
        sha256 = None if expected is None else hashlib.sha256(expected).hexdigest()
        return replace_file(folder, "memory/MEMORY.md", content, expected=sha256)


def settle(file: Path, *, quiet: float = 0, wait: bool = True) -> tuple[int, list[bytes]]:
    kept: list[bytes] = []
    with Folder(file.parent.parent) as folder:
        return import_quiet_copies(folder, "memory/MEMORY.md", kept.append, quiet=quiet, wait=wait), kept


def without_exchange(monkeypatch) -> None:
    monkeypatch.setattr(atomic_replace, "_renamed", lambda *_: False)


def without_links(monkeypatch) -> None:
    def refuse(*_args, **_options) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    without_exchange(monkeypatch)
    monkeypatch.setattr(os, "link", refuse)


WAYS = pytest.mark.parametrize("way", [lambda _: None, without_exchange, without_links], ids=["swap", "link", "copy"])


@WAYS
def test_a_replaced_file_keeps_its_mode_and_its_old_bytes_are_imported(file, monkeypatch, way):
    way(monkeypatch)
    file.chmod(0o604)

    result = replace(file, b"after", b"before")

    assert (result.verdict, file.read_bytes(), file.stat().st_mode & 0o777) == ("written", b"after", 0o604)
    assert settle(file) == (0, [b"before"])
    assert os.listdir(file.parent) == ["MEMORY.md"]
    with Folder(file.parent.parent) as folder:
        assert result.info == folder.read_bytes("memory/MEMORY.md")[1]


@pytest.mark.parametrize("mode", [0o4644, 0o2664, 0o1644, 0o6755])
def test_a_file_with_special_bits_is_refused(file, mode):
    file.chmod(mode)

    result = replace(file, b"after", b"before")

    assert result.verdict == "refused"
    assert f"{mode:04o}" in result.why
    assert (file.read_bytes(), file.stat().st_mode & 0o7777) == (b"before", mode)


def test_a_replaced_file_loses_its_executable_bits(file):
    file.chmod(0o755)

    assert replace(file, b"after", b"before").verdict == "written"

    assert file.stat().st_mode & 0o7777 == 0o644


def test_an_unexpected_text_is_not_replaced(file):
    assert replace(file, b"after", b"something else").verdict == "changed"
    assert file.read_bytes() == b"before"
    assert os.listdir(file.parent) == ["MEMORY.md"]


def test_a_file_created_at_the_same_moment_is_not_replaced(file):
    assert replace(file, b"after", None).verdict == "changed"
    assert file.read_bytes() == b"before"


@pytest.mark.parametrize("way", [lambda _: None, without_exchange], ids=["swap", "link"])
def test_a_new_file_is_created_if_its_folder_exists(file, monkeypatch, way):
    way(monkeypatch)
    file.unlink()

    assert replace(file, b"new", None).verdict == "written"
    assert file.read_bytes() == b"new"
    assert os.listdir(file.parent) == ["MEMORY.md"]


def test_a_file_renamed_into_place_at_the_last_moment_is_imported(file, monkeypatch):
    swap_in = atomic_replace._swap_in

    def racing(directory: int, name: str, temporary: str) -> str:
        other = file.with_name("agents-own")
        other.write_bytes(b"the agent's")
        other.rename(file)
        return swap_in(directory, name, temporary)

    monkeypatch.setattr(atomic_replace, "_swap_in", racing)
    replace(file, b"after", b"before")

    assert file.read_bytes() == b"after"
    assert settle(file)[1] == [b"the agent's"]


def test_a_link_put_there_at_the_last_moment_is_not_followed(file, tmp_path, monkeypatch):
    swap_in = atomic_replace._swap_in
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")

    def racing(directory: int, name: str, temporary: str) -> str:
        file.unlink()
        file.symlink_to(secret)
        return swap_in(directory, name, temporary)

    monkeypatch.setattr(atomic_replace, "_swap_in", racing)

    assert replace(file, b"after", b"before").verdict == "refused"
    assert file.is_symlink()
    assert secret.read_bytes() == b"secret"
    assert os.listdir(file.parent) == ["MEMORY.md"]


@pytest.mark.parametrize("path", ["memory/link.md", "memory/folder", "memory/pipe", "linked/MEMORY.md", "../x"])
def test_links_folders_and_pipes_are_refused(file, path):
    root = file.parent.parent
    (root / "memory" / "link.md").symlink_to(file)
    (root / "memory" / "folder").mkdir()
    os.mkfifo(root / "memory" / "pipe")
    (root / "linked").symlink_to(root / "memory")
    with Folder(root) as folder:
        result = replace_file(folder, path, b"after", expected=hashlib.sha256(b"before").hexdigest())

    assert result.verdict == "refused"
    assert file.read_bytes() == b"before"


@pytest.mark.parametrize("call", ["write", "fsync", "rename"])
def test_a_disk_error_leaves_the_file_unchanged(file, monkeypatch, call):
    def fail(*_args, **_options) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, call, fail)
    result = replace(file, b"after", b"before")
    monkeypatch.undo()

    assert (result.verdict, result.why) == ("refused", "can't be written: No space left on device")
    assert file.read_bytes() == b"before"
    assert os.listdir(file.parent) == ["MEMORY.md"]


def test_a_copy_that_is_not_quiet_is_left_to_a_later_call(file):
    replace(file, b"after", b"before")

    assert settle(file, quiet=60, wait=False) == (1, [])
    with Folder(file.parent.parent) as folder:
        assert len(private_names(folder, "memory/MEMORY.md")) == 1


def test_a_copy_stays_if_importing_it_fails(file):
    replace(file, b"after", b"before")

    def fail(_content: bytes) -> None:
        raise RuntimeError

    with Folder(file.parent.parent) as folder, pytest.raises(RuntimeError):
        import_quiet_copies(folder, "memory/MEMORY.md", fail, quiet=0, wait=True)
    assert settle(file)[1] == [b"before"]


def test_unfinished_new_files_are_removed_without_import(file):
    (file.parent / ".MEMORY.md.memoryhub-new-0a1b2c3d").write_bytes(b"half a te")
    (file.parent / ".MEMORY.md.memoryhub-old-0a1b2c3d").symlink_to(file)

    assert settle(file) == (0, [])
    assert os.listdir(file.parent) == ["MEMORY.md"]
    assert file.read_bytes() == b"before"


def test_a_copy_that_the_agent_still_writes_to_is_imported_again(file):
    kept: list[bytes] = []
    replace(file, b"after", b"before")

    def keep_and_write(content: bytes) -> None:
        kept.append(content)
        if len(kept) == 1:
            with next(file.parent.glob(".*old*")).open("ab") as copy:
                copy.write(b" and more")

    with Folder(file.parent.parent) as folder:
        left = [import_quiet_copies(folder, "memory/MEMORY.md", keep_and_write, quiet=0, wait=True) for _ in range(2)]

    assert left == [1, 0]
    assert kept == [b"before", b"before and more"]


def test_a_copy_is_imported_even_if_its_bytes_were_read_before(file):
    replace(file, b"after", b"before")
    kept: list[bytes] = []

    with Folder(file.parent.parent) as folder:
        (name,) = private_names(folder, "memory/MEMORY.md")
        folder.skip_unchanged({f"memory/{name}": folder.stamp(f"memory/{name}")})
        assert import_quiet_copies(folder, "memory/MEMORY.md", kept.append, quiet=0, wait=True) == 0

    assert kept == [b"before"]


def test_a_copy_that_is_not_quiet_is_waited_for(file, monkeypatch):
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    replace(file, b"after", b"before")

    assert settle(file, quiet=60, wait=True) == (0, [b"before"])
    assert len(waits) == 1
    assert 0 < waits[0] < 60


def test_nothing_is_lost_without_rename_exchange(file, monkeypatch):
    monkeypatch.setattr("ctypes.CDLL", lambda *_args, **_options: object())

    assert replace(file, b"after", b"before").verdict == "written"
    assert file.read_bytes() == b"after"
    assert settle(file) == (0, [b"before"])


@pytest.mark.parametrize(
    ("like", "bytes_"),
    [
        (b"a\n", b"x\ny\n"),
        (b"a\r\nb\r\n", b"x\r\ny\r\n"),
        (b"\xef\xbb\xbfa\n", b"\xef\xbb\xbfx\ny\n"),
        (b"", b"x\ny\n"),
    ],
)
def test_a_text_is_written_in_the_style_of_the_file_it_replaces(like, bytes_):
    assert document_bytes("x\ny\n", like) == bytes_


@pytest.mark.parametrize("style", [{"indent": 2}, {"indent": 4}, {"separators": (",", ":")}, {}])
def test_knowledge_in_known_json_styles_is_reproduced_exactly(style):
    raw = json.dumps({"entries": [{"content": "é", "n": 1.50, "x": None}], "z": 1, "a": 2}, **style).encode()

    assert edited_knowledge(raw, lambda *_: None, list).text is None
    assert edited_knowledge(raw, lambda *_: None, list).why_not == ""
    changed = edited_knowledge(raw, lambda *_: EntryEdit({"x": 2}), list).text
    assert changed is not None
    assert changed.encode() == raw.replace(b"null", b"2")


@pytest.mark.parametrize("raw", [b"{", b'{"a": 1, "a": 2, "entries": []}', b'{ "entries": []}', b'{"rows": []}'])
def test_knowledge_that_cannot_be_reproduced_exactly_is_not_written(raw):
    assert edited_knowledge(raw, lambda *_: None, list).why_not
