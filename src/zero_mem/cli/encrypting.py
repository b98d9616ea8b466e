"""Commands for encrypted stores: encryption new-key, rewrap, renew, erase."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zero_mem.cli.session import Session, command
from zero_mem.errors import InvalidInput, NotFound, StoreUnavailable
from zero_mem.text.nouns import counted

if TYPE_CHECKING:
    from zero_mem.encryption import SealedStorage

app = typer.Typer()
encryption = typer.Typer(help="Keys of an encrypted store.", no_args_is_help=True)
app.add_typer(encryption, name="encryption")


@command(encryption, "new-key", shared=("as_json",))
def new_key(
    session: Session,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Where the key goes.")
    ] = Path("master.key"),
) -> None:
    """Make a master key in a new file that only you can read.

    Keep a copy elsewhere: without it nothing in a store that it encrypts can be read.
    """
    from zero_mem.encryption import MasterKey

    try:
        with open(out, "x", opener=_for_its_owner, encoding="ascii") as file:
            file.write(MasterKey.generate() + "\n")
    except FileExistsError:
        raise InvalidInput(f"{out} is there already; a key is never overwritten") from None
    except OSError as error:
        raise StoreUnavailable(f"{out}: can't be written: {error.strerror}") from error
    session.show({"file": str(out)}, f"wrote {out}; name it in ZERO_MEM_MASTER_KEY_FILE")


@command(encryption, "rewrap", shared=("store", "as_json"))
def rewrap(
    session: Session,
    new: Annotated[
        Path, typer.Option("--new-key", metavar="FILE", help="The file with the new master key.")
    ],
) -> None:
    """Give the store another master key; its values stay as they are.

    The environment names the present key. Programs that have the store open go on; name the new key
    to them at their next start.
    """
    from zero_mem.encryption import MasterKey

    count = _sealed(session).rewrap(MasterKey.from_file(new))
    session.show({"namespaces": count}, f"rewrapped the keys of {counted(count, 'namespace')}")


@command(encryption, "renew", shared=("store", "namespace", "as_json"))
def renew(session: Session) -> None:
    """Give a namespace a new data key.

    What older ones encrypted still opens.
    """
    number = _sealed(session).renew_key(session.path)
    session.show({"key": number}, f"data key {number} encrypts from now on")


@command(encryption, "erase", shared=("store", "namespace", "as_json"))
def erase(
    session: Session,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; there is no way back.")] = False,
) -> None:
    """Erase a namespace's keys; there is no way back.

    Nothing in it can be read again, by anyone.

    Old backups of the store are unreadable too where the wrapped keys are in a file beside it, and
    no backup holds that file.
    """
    if session.named is None:
        raise InvalidInput("name the namespace to erase with --namespace")
    if not yes:
        raise InvalidInput("give --yes to erase keys; nothing was changed")
    if not _sealed(session).erase_keys(session.path):
        raise NotFound(f"namespace {'/'.join(session.path)} has no keys")
    session.show({"erased": True}, "erased; the records can't be read again")


def _sealed(session: Session) -> SealedStorage:
    from zero_mem.encryption import SealedStorage

    storage = session.memory.storage
    if not isinstance(storage, SealedStorage):
        raise InvalidInput("the store is not encrypted; ZERO_MEM_MASTER_KEY_FILE names no key")
    return storage


def _for_its_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
