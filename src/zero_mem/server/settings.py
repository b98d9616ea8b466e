"""The settings of the server: one table for flags, environment, file and documentation."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from math import inf, isfinite
from pathlib import Path
from typing import Any, Final

from zero_mem.errors import InvalidInput

PREFIX: Final = "ZERO_MEM_SERVER_"
"""Begins the environment variable of a setting."""


def _setting(default: Any, text: str, *, least: float = -inf, most: float = inf) -> Any:
    return field(default=default, metadata={"text": text, "least": least, "most": most})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the server runs; each field is a setting with its default and what it means."""

    host: str = _setting("127.0.0.1", "Address to listen on.")
    port: int = _setting(8765, "Port to listen on; 0 takes a free one.", least=0, most=65_535)
    names: str = _setting(
        "", "Host names, with commas, that it answers to without a key, besides loopback ones."
    )
    store: str = _setting("", "The store's URL; by default as for every command.")
    durability: str = _setting("full", "full or normal: whether a write is fsynced first.")
    embedder: str = _setting("", "Makes recall dense too, such as e5.")
    backup_folder: str = _setting("", "Folder for backups by the clock; none are made without it.")
    backup_every: float = _setting(
        86_400.0, "Seconds between two backups; 0 makes them by hand only.", least=0
    )
    backup_keep: int = _setting(7, "Most backups that stay; the oldest go.", least=1)
    backup_portable: bool = _setting(
        False, "Back an SQLite store up as an archive, as others are, not as a copy of its file."
    )
    sweep_every: float = _setting(60.0, "Seconds between two sweeps; 0 sweeps never.", least=0)
    max_body: int = _setting(8_388_608, "Most bytes of a request's body.", least=1)
    max_import: int = _setting(1_073_741_824, "Most bytes of one import.", least=1)
    max_results: int = _setting(10_000, "Most records or hits of one answer.", least=1)
    body_timeout: float = _setting(
        30.0, "Seconds in which a request's head, and its body, must come.", least=0.001
    )
    rate: float = _setting(500.0, "Requests a second of one key; 0 is no limit.", least=0)
    burst: int = _setting(1000, "Requests that a key may make at once above its rate.", least=1)
    backlog: int = _setting(
        1000, "Most requests that wait for the store; more are refused.", least=1
    )
    max_streams: int = _setting(100, "Most change feeds open at once.", least=0)
    heartbeat: float = _setting(
        15.0, "Seconds of silence before a feed sends a comment.", least=0.001
    )
    poll: float = _setting(
        0.5, "Seconds until a feed sees what other processes wrote.", least=0.001
    )
    recheck: float = _setting(1.0, "Seconds until a revoked key stops working.", least=0)
    console: bool = _setting(True, "Serve the console at /console.")
    proxy_upstream: str = _setting(
        "", "Serve the proxy at /proxy, to this provider: URL, or anthropic=URL,openai=URL."
    )
    proxy_mode: str = _setting("observe", "observe (nothing is changed) or offload.")
    proxy_share: float = _setting(0.25, "Share of the tool results' tokens to keep in prompts.")
    proxy_prices: str = _setting(
        "", "A model of the price table for every call, or a price file; else each call's model."
    )
    proxy_one_user: bool = _setting(False, "All keys and conversations are one person's.")
    proxy_namespace: str = _setting("proxy", "Namespace of the proxy's accounts and memories.")
    proxy_body_limit: int = _setting(67_108_864, "Most bytes of a request to a provider.", least=1)
    proxy_timeout: float = _setting(600.0, "Seconds that a provider may say nothing.", least=0.001)
    proxy_page_token: str = _setting(
        "", "Opens /proxy/zero-mem where there are keys; without it one is made up and said."
    )
    mcp: bool = _setting(True, "Serve the Model Context Protocol at /mcp, with its extra.")
    cors: str = _setting("", "Origins that browsers may call from, with commas.")
    grace: float = _setting(
        10.0, "Seconds that requests get to end when the server stops.", least=0
    )


def load(
    *, flags: Mapping[str, str | None], environment: Mapping[str, str], file: Path | None = None
) -> Settings:
    """Read the settings: a flag goes before the environment, that before the file.

    Args:
        flags: By the field's name, as they were typed; None is not given.
        environment: The variables of the process.
        file: A TOML file with fields at its top.

    Raises:
        InvalidInput: A setting is unknown or its value is wrong; the message says where.
    """
    values: dict[str, Any] = {}
    if file is not None:
        values |= _from_file(file)
    for each in fields(Settings):
        variable = PREFIX + each.name.upper()
        for where, text in (
            (variable, environment.get(variable)),
            (flag(each.name), flags.get(each.name)),
        ):
            if text is not None:
                values[each.name] = _parsed(each.name, text, where)
    return Settings(**values)


def flag(name: str) -> str:
    """Give the flag of a setting."""
    return "--" + name.replace("_", "-")


def _from_file(file: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{file}: can't be read as TOML: {error}") from None
    known = {each.name for each in fields(Settings)}
    unknown = sorted(found.keys() - known)
    if unknown:
        raise InvalidInput(
            f"{file}: no setting {unknown[0]!r}; there are {', '.join(sorted(known))}"
        )
    return {name: _checked(name, value, f"{file}: {name}") for name, value in found.items()}


def _parsed(name: str, text: str, where: str) -> Any:
    kind = type(_default(name))
    if kind is str:
        return _checked(name, text, where)
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    return _checked(name, value, where)


def _checked(name: str, value: Any, where: str) -> Any:
    kind = type(_default(name))
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        raise InvalidInput(f"{where} is {_KINDS[kind]}, not {value!r}")
    if kind is float and not isfinite(value):
        raise InvalidInput(f"{where} is a finite number, not {value!r}")
    if kind in (int, float):
        _check_range(name, value, where)
    return value


def _check_range(name: str, value: float, where: str) -> None:
    bounds = next(each.metadata for each in fields(Settings) if each.name == name)
    if value < bounds["least"]:
        raise InvalidInput(f"{where} is at least {bounds['least']}, not {value!r}")
    if value > bounds["most"]:
        raise InvalidInput(f"{where} is at most {bounds['most']}, not {value!r}")


_KINDS: Final = {bool: "true or false", str: "text", int: "a whole number", float: "a number"}


def _default(name: str) -> Any:
    return next(each.default for each in fields(Settings) if each.name == name)


def table() -> list[tuple[str, str, str]]:
    """Give each setting's name, default and meaning, as the documentation shows them."""
    return [(each.name, str(each.default), each.metadata["text"]) for each in fields(Settings)]
