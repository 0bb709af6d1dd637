"""Database drivers, statements, notifications and the schema's building blocks."""
