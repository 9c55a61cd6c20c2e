"""A session as a file: everything that belongs to it, with whole histories, as JSON lines.

Works through the `Store` protocol alone, so a file written from one kind of store can be read
into another. `lines.py` describes the format.
"""

from foredeck.store.portable.export import ExportSummary, export_session
from foredeck.store.portable.importing import ImportSummary, import_file
from foredeck.store.portable.lines import ImportLimits

__all__ = ["ExportSummary", "ImportLimits", "ImportSummary", "export_session", "import_file"]
