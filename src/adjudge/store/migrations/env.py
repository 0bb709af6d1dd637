"""Alembic's entry: run the steps on the connection that ``adjudge.store.migrations`` opened."""

from alembic import context

from adjudge.store.schema import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA, transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
