"""Commands for API keys: key create, list, revoke."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zero_mem.cli import inputs
from zero_mem.cli.session import Session, command
from zero_mem.types import Unset

if TYPE_CHECKING:
    from zero_mem.access.keys import ApiKey

app = typer.Typer()
key = typer.Typer(help="API keys: who may read and write which namespaces.", no_args_is_help=True)
app.add_typer(key, name="key")


@command(key, "create", shared=("store", "as_json"), creates=True)
def create(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who or what the key is for.")],
    grant: Annotated[
        list[str],
        typer.Option(
            "--grant",
            metavar="RIGHT:PATTERN",
            help="read, write or admin over namespaces, such as write:acme/**; repeat for more.",
        ),
    ],
    expires_in: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="How long it is valid, such as 90d; or never."),
    ] = None,
) -> None:
    """Make a key and print it, this once: the store keeps only its hash.

    In a pattern * is any one segment, and ** at the end is the path so far and all below it.
    """
    from zero_mem.access.grants import Grant

    lifetime = inputs.lifetime(expires_in)
    new = session.memory.keyring.create(
        name,
        [Grant.parse(each) for each in grant],
        expires_in=None if isinstance(lifetime, Unset) else lifetime,
    )
    value = {**_json(new.key), "credential": new.credential}
    session.show(value, new.credential)
    session.note(f"key {new.key.key_id} for {name}; it is not shown again")


@command(key, "list", shared=("store", "as_json"))
def list_(session: Session) -> None:
    """List the keys with their rights, the oldest first; revoked and expired ones too."""
    keys = session.memory.keyring.every()
    now = session.memory.now()
    lines = [f"{each.key_id}  {_state(each, now)}  {each.name}  {_grants(each)}" for each in keys]
    session.show({"keys": [_json(each) for each in keys]}, "\n".join(lines) or "no keys")


@command(key, "revoke", shared=("store", "as_json"))
def revoke(
    session: Session,
    key_id: Annotated[str, typer.Argument(metavar="KEY", help="The id that `key list` shows.")],
) -> None:
    """End a key at once."""
    ended = session.memory.keyring.revoke(key_id)
    session.show(_json(ended), f"revoked {ended.key_id} ({ended.name})")


def _json(each: ApiKey) -> dict[str, Any]:
    return {
        "key_id": each.key_id,
        "name": each.name,
        "grants": [str(grant) for grant in each.grants],
        "created_at": each.created_at.isoformat(),
        "expires_at": each.expires_at and each.expires_at.isoformat(),
        "revoked_at": each.revoked_at and each.revoked_at.isoformat(),
        "made_by": each.made_by,
    }


def _state(each: ApiKey, now: datetime) -> str:
    if each.revoked_at is not None:
        return "revoked"
    return "valid  " if each.is_valid(now) else "expired"


def _grants(each: ApiKey) -> str:
    return " ".join(map(str, each.grants))
