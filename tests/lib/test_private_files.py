import pytest
from django.core.exceptions import SuspiciousFileOperation
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage


@pytest.fixture(autouse=True)
def shared(settings, tmp_path):
    settings.MEMORYHUB_FILES = str(tmp_path)
    return tmp_path


def test_a_file_is_private_and_replaces_an_older_one(shared):
    for text in (b"old", b"new"):
        assert default_storage.save("tables/one", ContentFile(text)) == "tables/one"

    with default_storage.open("tables/one") as file:
        assert file.read() == b"new"
    assert (shared / "tables" / "one").stat().st_mode & 0o777 == 0o600
    assert (shared / "tables").stat().st_mode & 0o777 == 0o700
    assert default_storage.listdir("tables") == ([], ["one"])
    default_storage.delete("tables/one")
    assert not default_storage.exists("tables/one")


def test_links_count_as_missing(shared):
    (shared / "secret").write_text("s")
    (shared / "link").symlink_to("secret")

    assert not default_storage.exists("link")
    assert default_storage.listdir("") == ([], ["secret"])
    with pytest.raises(FileNotFoundError):
        default_storage.open("link")
    default_storage.save("link", ContentFile(b"new"))
    assert (shared / "secret").read_text() == "s"


def test_a_failed_save_leaves_no_file(shared):
    def chunks():
        yield b"half"
        raise OSError("the disk is full")

    content = ContentFile(b"")
    content.chunks = chunks
    with pytest.raises(OSError, match="full"):
        default_storage.save("tables/one", content)

    assert list((shared / "tables").iterdir()) == []


def test_names_outside_the_folder_are_refused():
    with pytest.raises(SuspiciousFileOperation):
        default_storage.open("../outside")
