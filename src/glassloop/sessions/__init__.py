"""Sessions on disk: the journal in SQLite, the wire log, and what people do with both: list, search, fork, export."""
