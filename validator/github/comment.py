"""The one comment on a pull request: made only when something is wrong, brought up to date ever after."""

from __future__ import annotations

from typing import Any

from validator.github.repository import Repository

#: First line of the comment, which nobody sees; it is looked for only in comments of this program's own account.
MARK = "<!-- megatron-change-validator -->"


def publish_comment(repository: Repository, pull: int, text: str, *, wrong: bool) -> str:
    """``created``, ``updated``, ``unchanged`` or ``none`` (nothing is wrong, and nothing ever was)."""
    body = f"{MARK}\n{text}"

    def own() -> Any:
        return next((each for each in repository.comments(pull) if _is_own(each)), None)

    found = own()
    if found is None:
        if not wrong:
            return "none"
        repository.transport.once(own, lambda: repository.create_comment(pull, body))
        return "created"
    if found["body"].replace("\r\n", "\n").strip() == body.strip():
        return "unchanged"
    repository.update_comment(int(found["id"]), body)
    return "updated"


def _is_own(comment: dict[str, Any]) -> bool:
    """Made by an app with our mark: a person can write the mark, and cannot be an app."""
    author = comment.get("user") or {}
    return str(comment.get("body") or "").startswith(MARK) and author.get("type") == "Bot"
