from django.urls import path

from memoryhub.sync.views import export, imports, projects, sync

urlpatterns = [
    path("import/", imports.new_import, name="import"),
    path("import/projects/", projects.import_projects, name="import-projects"),
    path("imports/<int:pk>/", imports.import_report, name="import-report"),
    path("imports/<int:pk>/cancel/", imports.cancel, name="cancel-import"),
    path("w/<slug:slug>/imports/", imports.workspace_imports, name="workspace-imports"),
    path("w/<slug:slug>/imports/files/", imports.workspace_files, name="workspace-files"),
    path("w/<slug:slug>/sync/", sync.sync_page, name="sync"),
    path("w/<slug:slug>/sync/switch/", sync.switch, name="switch-sync"),
    path("w/<slug:slug>/sync/send/", sync.send, name="send-to-agent"),
    path("w/<slug:slug>/sync/folders/", sync.add_source_folder, name="add-source-folder"),
    path("w/<slug:slug>/sync/folders/<int:pk>/", sync.change_source_folder, name="change-source-folder"),
    path("w/<slug:slug>/forget/<int:pk>/files/", sync.erased_files, name="erased-files"),
    path("person-data/receipts/<int:pk>/files/", sync.erased_files_of_person, name="erased-files-of-person"),
    path("w/<slug:slug>/sync/now/", sync.sync_now, name="sync-now"),
    path("w/<slug:slug>/imports/again/", imports.import_again, name="import-again"),
    path("w/<slug:slug>/export/", export.export_plan, name="export-workspace"),
    path("w/<slug:slug>/export/download/", export.download_export, name="download-export"),
]
