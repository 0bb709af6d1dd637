"""Entry point of Alembic: runs the migrations on the connection that ``runner`` opened."""

from alembic import context

from adjudge.store.schema import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA, transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
