"""Tasks under the names by which those that wait in the database know them."""

from memoryhub.backups.tasks import back_up, check_backup
from memoryhub.sync.tasks import import_folder, sync_folder

__all__ = ["back_up", "check_backup", "import_folder", "sync_folder"]
