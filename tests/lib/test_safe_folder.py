import os
import socket

import pytest

from memoryhub.lib.files.safe_folder import Folder, FolderMissing, SkippedPath, UnreadableFile, display_path
from tests.hub import raises_code


def lines(folder: Folder, path: str, **limits: int) -> list[tuple[int, bytes | None]]:
    return folder.read(path, lambda stream: list(stream.lines(**limits)))[0]


def test_lines_end_at_newlines_only(tmp_path):
    (tmp_path / "a").write_bytes("x\u2028y\r\n\n\x0cz".encode())

    with Folder(tmp_path) as folder:
        assert lines(folder, "a") == [(1, "x\u2028y\r".encode()), (2, b""), (3, b"\x0cz")]


@pytest.mark.parametrize("chunk", [3, 5, 1000])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_lines_of_utf_16_are_yielded_as_utf_8(tmp_path, monkeypatch, chunk, encoding):
    monkeypatch.setattr("memoryhub.lib.files.safe_folder.CHUNK_BYTES", chunk)
    (tmp_path / "a").write_bytes("\ufeffté\nĊ 🍵\n\nend".encode(encoding))

    with Folder(tmp_path) as folder:
        assert [line.decode() for _, line in lines(folder, "a")] == ["té", "Ċ 🍵", "", "end"]


def test_a_giant_line_is_skipped(tmp_path):
    (tmp_path / "a").write_bytes(b"short\n" + b"x" * 3_000_000 + b"\nlast")

    with Folder(tmp_path) as folder:
        assert lines(folder, "a", limit=100) == [(1, b"short"), (2, None), (3, b"last")]


@pytest.mark.parametrize("chunk", [1, 3, 4, 100])
def test_a_line_of_exactly_the_limit_is_read(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr("memoryhub.lib.files.safe_folder.CHUNK_BYTES", chunk)
    (tmp_path / "a").write_bytes(b"abcd\nabcde\n\nabcd\nabcdef")

    with Folder(tmp_path) as folder:
        assert [line for _, line in lines(folder, "a", limit=4)] == [b"abcd", None, b"", b"abcd", None]


def test_links_pipes_and_sockets_are_refused(tmp_path):
    (tmp_path / "link").symlink_to("/etc/os-release")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        with Folder(tmp_path) as folder:
            for name in ("link", "pipe", "socket", "folder", "absent"):
                with pytest.raises(UnreadableFile):
                    folder.read_bytes(name)
            assert {item.path for item in folder.files() if isinstance(item, SkippedPath)} == {
                "link",
                "pipe",
                "socket",
            }


def test_symlinked_folders_are_not_followed(tmp_path):
    (tmp_path / "inner").symlink_to("/etc")

    with Folder(tmp_path) as folder:
        assert folder.names("inner") == []
        with pytest.raises(UnreadableFile):
            folder.read_bytes("inner/os-release")


def test_files_below_symlinked_folders_are_not_read(tmp_path):
    (tmp_path / "outside" / "deep").mkdir(parents=True)
    (tmp_path / "outside" / "deep" / "secret").write_text("x")
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "linked").symlink_to(tmp_path / "outside")

    with Folder(tmp_path / "agent") as folder:
        for path in ("linked/deep/secret", "linked/deep"):
            assert not folder.exists(path)
            assert folder.names(path) == []
            with pytest.raises(UnreadableFile):
                folder.read_bytes(path)


def test_files_deleted_after_listing_are_skipped(tmp_path, monkeypatch):
    (tmp_path / "here").write_text("x")
    monkeypatch.setattr(Folder, "names", lambda _self, _path="": ["gone", "here"])

    with Folder(tmp_path) as folder:
        assert list(folder.files()) == ["here"]
        assert folder.stamp("here")
        assert folder.stamp("gone") == ""


def test_reading_closes_its_files(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").write_text("x")
    before = len(os.listdir("/dev/fd"))

    with Folder(tmp_path) as folder:
        assert list(folder.files()) == ["a/b/c"]
        folder.read_bytes("a/b/c")

    assert len(os.listdir("/dev/fd")) == before


@pytest.mark.parametrize("path", ["../secret", "a/../../secret"])
def test_a_path_cannot_leave_the_folder(path, tmp_path):
    (tmp_path / "secret").write_text("x")
    (tmp_path / "agent" / "a").mkdir(parents=True)

    with Folder(tmp_path / "agent") as folder, pytest.raises(UnreadableFile):
        folder.read_bytes(path)


def test_a_file_over_the_limit_is_not_read(tmp_path):
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(2**31)

    with Folder(tmp_path) as folder, pytest.raises(UnreadableFile, match="larger"):
        folder.read_bytes("sparse")


def test_a_file_of_exactly_the_limit_is_read(tmp_path):
    (tmp_path / "a").write_bytes(b"x" * 10)

    with Folder(tmp_path) as folder:
        assert folder.read_bytes("a", limit=10)[0] == b"x" * 10
        with pytest.raises(UnreadableFile):
            folder.read_bytes("a", limit=9)


def test_a_file_that_grows_over_the_limit_is_not_read(tmp_path):
    file = tmp_path / "a"
    file.write_bytes(b"x")

    def grow(stream) -> bytes:
        file.write_bytes(b"x" * 11)
        return stream.read()

    with Folder(tmp_path) as folder, pytest.raises(UnreadableFile):
        folder.read("a", grow, limit=10)


def test_folders_are_read_up_to_six_levels_deep(tmp_path):
    deep = tmp_path.joinpath(*"123456")
    (deep / "7").mkdir(parents=True)
    (deep / "found").write_text("x")
    (deep / "7" / "lost").write_text("x")

    with Folder(tmp_path) as folder:
        refused, found = folder.files()

    assert isinstance(refused, SkippedPath)
    assert (refused.path, found) == ("1/2/3/4/5/6/7", "1/2/3/4/5/6/found")


def test_too_many_files_in_a_folder_are_reported(tmp_path, monkeypatch):
    monkeypatch.setattr("memoryhub.lib.files.safe_folder.MAX_FILES", 2)
    for name in "abc":
        (tmp_path / name).write_text("x")

    with Folder(tmp_path) as folder:
        *found, refused = folder.files()

    assert found == ["a", "b"]
    assert isinstance(refused, SkippedPath)


def test_a_file_that_changed_twice_is_read_at_the_third_attempt(tmp_path):
    file = tmp_path / "a"
    file.write_text("0")
    reads: list[bytes] = []

    def read_and_change(stream) -> bytes:
        reads.append(stream.read())
        if len(reads) < 3:
            file.write_text("x" * len(reads) * 2)
        return reads[-1]

    with Folder(tmp_path) as folder:
        content, facts = folder.read("a", read_and_change)

    assert (content, facts.size, len(reads)) == (b"xxxx", 4, 3)


def test_a_file_that_keeps_changing_is_skipped(tmp_path):
    file = tmp_path / "a"
    file.write_text("x")

    def grow(stream) -> bytes:
        with file.open("a") as out:
            out.write("y")
        return stream.read()

    with Folder(tmp_path) as folder, raises_code("unstable_file"):
        folder.read("a", grow)


@pytest.mark.parametrize("takes_its_place", [True, False])
def test_a_file_replaced_or_removed_while_read_is_skipped(tmp_path, takes_its_place):
    file = tmp_path / "a"
    file.write_text("old")

    def read_and_replace(stream) -> bytes:
        content = stream.read()
        if takes_its_place:
            (tmp_path / "b").write_text("new")
            (tmp_path / "b").replace(file)
        else:
            file.unlink()
        return content

    with Folder(tmp_path) as folder, pytest.raises(UnreadableFile):
        folder.read("a", read_and_replace)


def test_a_missing_folder_raises(tmp_path):
    with pytest.raises(FolderMissing, match="can't be opened"):
        Folder(tmp_path / "gone")


def test_names_that_are_not_utf8_can_be_displayed(tmp_path):
    (tmp_path / os.fsdecode(b"bad\xffname")).write_text("x")

    with Folder(tmp_path) as folder:
        [name] = folder.files()
        assert display_path(name) == "bad\\xffname"
