"""A change as it is asked for: stored at once, planned later, and superseded by a newer one on its line."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from validator.service.jobs.moves import abandon, is_lasting, let_go
from validator.service.tables import Change, ChangeState
from validator.service.webhooks.asks import CheckCommit, Source, key_of


def take_change(session: Session, ask: CheckCommit, now: float) -> tuple[str, str]:
    """Store a change; gives the outcome in one word, and a sentence. What it supersedes is let go at once."""
    source, asked = ask.source, ask.asked or now
    key = key_of("change", source.repository, ask.commit, ask.action, ask.subject)
    row = session.scalars(select(Change).where(Change.key == key)).first()
    if row is not None and (row.state != ChangeState.LET_GO or asked <= row.asked):
        return "duplicate", f"The same was asked for before: a check of {ask.commit[:12]}."
    if row is None:
        row = Change(
            key=key, repository=source.repository, commit=ask.commit, line=ask.line, pull_request=ask.pull_request,
            installation=source.installation, requester=source.requester, action=ask.action, subject=ask.subject,
            image=ask.image, created=now,
        )  # fmt: skip
        session.add(row)
    row.base, row.asked, row.attempts, row.after = ask.base, asked, 0, 0.0
    newer = session.scalars(
        select(Change.commit).where(
            Change.repository == source.repository, Change.line == ask.line, Change.commit != ask.commit,
            Change.asked > asked, Change.state != ChangeState.LET_GO,
        )
    ).first()  # fmt: skip
    if newer is not None:
        row.state, row.sentence = ChangeState.LET_GO, f"Superseded by {newer[:12]}."
        return "accepted", f"{ask.commit[:12]} is superseded by {newer[:12]}."
    row.state, row.sentence = ChangeState.ASKED, ""
    why = f"Superseded by {ask.commit[:12]}."
    lasting = is_lasting(ask.line)
    abandon(session, source.repository, ask.line, why, now, but=ask.commit, until=asked, only_waiting=lasting)
    let_go(session, source.repository, ask.line, why, but=ask.commit, until=asked, only_asked=lasting)
    return "accepted", f"{ask.commit[:12]}: which pipelines it calls for is being worked out."


def ask_of(row: Change) -> CheckCommit:
    """What was asked for, as it came."""
    return CheckCommit(
        Source(row.repository, row.installation, row.requester), row.commit, row.line, row.pull_request, row.action,
        row.subject, row.image, row.asked, row.base,
    )  # fmt: skip


def external_id(row: Change, newest_job: int) -> str:
    """What tells the aggregate check run from others; one that shows further jobs is another."""
    return f"change:{row.key}:{newest_job}"


def change_key(text: str) -> str:
    """The change's key in the external ID of an aggregate check run; empty where it is none."""
    parts = text.split(":")
    return parts[1] if len(parts) == 3 and parts[0] == "change" else ""
