"""Problems, revisions, imports and statistics."""
