"""Changes, which are planned before jobs are made of them"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "changes",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("repository", sa.String(length=200), nullable=False),
        sa.Column("commit", sa.String(length=64), nullable=False),
        sa.Column("base", sa.String(length=64), nullable=False),
        sa.Column("line", sa.String(length=300), nullable=False),
        sa.Column("pull_request", sa.Integer(), nullable=True),
        sa.Column("installation", sa.BigInteger(), nullable=True),
        sa.Column("requester", sa.String(length=100), nullable=False),
        sa.Column("action", sa.String(length=16), nullable=False),
        sa.Column("subject", sa.String(length=300), nullable=False),
        sa.Column("image", sa.String(length=300), nullable=False),
        sa.Column("asked", sa.Double(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("sentence", sa.Text(), nullable=False),
        sa.Column("pipelines", sa.Text(), nullable=False),
        sa.Column("findings", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("after", sa.Double(), nullable=False),
        sa.Column("wanted", sa.Integer(), nullable=False),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("check_run", sa.BigInteger(), nullable=True),
        sa.Column("creating", sa.Boolean(), nullable=False),
        sa.Column("about", sa.BigInteger(), nullable=False),
        sa.Column("shown", sa.String(length=64), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("problem", sa.Text(), nullable=False),
        sa.Column("publish_after", sa.Double(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("key"),
    )
    with op.batch_alter_table("changes", schema=None) as batch_op:
        batch_op.create_index("changes_by_commit", ["repository", "commit"], unique=False)
        batch_op.create_index("changes_by_line", ["repository", "line"], unique=False)
        batch_op.create_index("changes_by_state", ["state", "after"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("changes", schema=None) as batch_op:
        batch_op.drop_index("changes_by_state")
        batch_op.drop_index("changes_by_line")
        batch_op.drop_index("changes_by_commit")
    op.drop_table("changes")
