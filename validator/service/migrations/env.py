"""Run by alembic: the connection comes from ``Database.upgrade``."""

from alembic import context

from validator.service.tables import Base

context.configure(
    connection=context.config.attributes["connection"], target_metadata=Base.metadata, render_as_batch=True
)
with context.begin_transaction():
    context.run_migrations()
