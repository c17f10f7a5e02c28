"""The first tables"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "deliveries",
        sa.Column("guid", sa.String(length=64), nullable=False),
        sa.Column("event", sa.String(length=64), nullable=False),
        sa.Column("action", sa.String(length=64), nullable=False),
        sa.Column("body", sa.String(length=64), nullable=False),
        sa.Column("outcome", sa.String(length=16), nullable=False),
        sa.Column("sentence", sa.Text(), nullable=False),
        sa.Column("received", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("guid"),
        sa.UniqueConstraint("body"),
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("repository", sa.String(length=200), nullable=False),
        sa.Column("commit", sa.String(length=64), nullable=False),
        sa.Column("pipeline", sa.String(length=200), nullable=False),
        sa.Column("action", sa.String(length=16), nullable=False),
        sa.Column("line", sa.String(length=300), nullable=False),
        sa.Column("pull_request", sa.Integer(), nullable=True),
        sa.Column("image", sa.String(length=300), nullable=False),
        sa.Column("installation", sa.BigInteger(), nullable=True),
        sa.Column("requester", sa.String(length=100), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("sentence", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("external", sa.String(length=200), nullable=False),
        sa.Column("asked", sa.Double(), nullable=False),
        sa.Column("handed", sa.Double(), nullable=False),
        sa.Column("after", sa.Double(), nullable=False),
        sa.Column("progress", sa.Text(), nullable=False),
        sa.Column("verdict", sa.String(length=32), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("changed", sa.Double(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("key"),
    )
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.create_index("jobs_by_line", ["repository", "line", "pipeline"], unique=False)
        batch_op.create_index("jobs_by_pipeline", ["pipeline", "created"], unique=False)
        batch_op.create_index("jobs_by_state", ["state", "after"], unique=False)

    op.create_table(
        "tokens",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("repository", sa.String(length=200), nullable=False),
        sa.Column("job_key", sa.String(length=64), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("expires", sa.Double(), nullable=False),
        sa.Column("revoked", sa.Double(), nullable=True),
        sa.Column("used", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("digest"),
    )
    op.create_table(
        "publications",
        sa.Column("job_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("check_run", sa.BigInteger(), nullable=True),
        sa.Column("creating", sa.Boolean(), nullable=False),
        sa.Column("wanted", sa.Integer(), nullable=False),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("problem", sa.Text(), nullable=False),
        sa.Column("after", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"],
            ["jobs.id"],
        ),
        sa.PrimaryKeyConstraint("job_id"),
    )
    op.create_table(
        "requests",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("repository", sa.String(length=200), nullable=False),
        sa.Column("installation", sa.BigInteger(), nullable=True),
        sa.Column("job_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("pull_request", sa.Integer(), nullable=True),
        sa.Column("commit", sa.String(length=64), nullable=False),
        sa.Column("person", sa.String(length=100), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("sentence", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("after", sa.Double(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"],
            ["jobs.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("key"),
    )
    op.create_table(
        "results",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("job_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("received", sa.Double(), nullable=False),
        sa.Column("pushed_by", sa.String(length=100), nullable=False),
        sa.Column("verdict", sa.String(length=32), nullable=False),
        sa.Column("claimed", sa.String(length=32), nullable=False),
        sa.Column("sentence", sa.Text(), nullable=False),
        sa.Column("gating", sa.Boolean(), nullable=False),
        sa.Column("pipeline", sa.String(length=200), nullable=False),
        sa.Column("hardware_class", sa.String(length=200), nullable=False),
        sa.Column("started", sa.String(length=40), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("overhead", sa.Double(), nullable=True),
        sa.Column("overhead_low", sa.Double(), nullable=True),
        sa.Column("overhead_high", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["job_id"],
            ["jobs.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("job_id", "attempt"),
    )
    with op.batch_alter_table("results", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_results_digest"), ["digest"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("results", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_results_digest"))

    op.drop_table("results")
    op.drop_table("requests")
    op.drop_table("publications")
    op.drop_table("tokens")
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.drop_index("jobs_by_state")
        batch_op.drop_index("jobs_by_pipeline")
        batch_op.drop_index("jobs_by_line")

    op.drop_table("jobs")
    op.drop_table("deliveries")
