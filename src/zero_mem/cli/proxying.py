"""The command that puts a proxy between a client and its provider."""

from __future__ import annotations

import contextlib
import secrets
from dataclasses import dataclass
from typing import Annotated, Final

import typer

from zero_mem.cli.session import Session, command
from zero_mem.errors import InvalidInput

app = typer.Typer()

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


@command(app, "proxy", creates=True)
def proxy(
    session: Session,
    upstream: Annotated[
        list[str],
        typer.Option(
            metavar="URL",
            help="The provider, such as https://api.anthropic.com; for several, anthropic=URL and "
            "openai=URL.",
        ),
    ],
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="0: a free one.")] = 8484,
    mode: Annotated[
        str, typer.Option(metavar="MODE", help="observe (nothing is changed) or offload.")
    ] = "observe",
    share: Annotated[
        float,
        typer.Option(metavar="SHARE", help="Share of the tool results' tokens to keep in prompts."),
    ] = 0.25,
    prices: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="A model of the price table for every call, or a price file. By default each "
            "call's own model.",
        ),
    ] = None,
    one_user: Annotated[
        bool,
        typer.Option(
            "--one-user",
            help="All keys and conversations are one person's: they share their memories.",
        ),
    ] = False,
    body_limit: Annotated[
        int, typer.Option(metavar="MB", min=1, help="The longest request that is taken.")
    ] = 64,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, help="How long a provider may say nothing.")
    ] = 600.0,
    page_token: Annotated[
        str | None,
        typer.Option(
            metavar="TOKEN",
            envvar="ZERO_MEM_PAGE_TOKEN",
            help="Opens the live page; made up where --host is not this machine's own.",
        ),
    ] = None,
) -> None:
    """Put memory between your client and its provider.

    Point a client at the address that is printed; no code changes. In the mode `observe` requests
    and answers pass byte for byte, and a live page shows what they cost and what offloading would
    save; `offload` replaces long tool results by receipts and answers the model's memory calls.
    Keys pass through and are never kept. Stop it with Ctrl-C: calls under way are finished.
    """
    from zero_mem.proxy.serving import bound, serve
    from zero_mem.proxy.settings import read

    token = page_token or ("" if host in _LOOPBACK else secrets.token_urlsafe(18))
    settings = read(
        upstream=upstream,
        mode=mode,
        share=share,
        prices=prices,
        namespace=session.named or ("proxy",),
        one_user=one_user,
        body_limit=body_limit << 20,
        timeout=timeout,
        page_token=token,
    )
    memory = session.memory
    listening = bound(host, port)
    address = _Address(host, listening.getsockname()[1], token)
    if settings.upstreams.leads_to(address.url):
        raise InvalidInput("the upstream is the proxy's own address")
    said = {"url": address.url, "page": address.page, "mode": mode}
    # A signal is how it is meant to end.
    with contextlib.suppress(KeyboardInterrupt):
        serve(
            memory,
            settings,
            listening,
            on_start=lambda: session.show(said, _pointers(address, mode)),
        )


@dataclass(frozen=True, slots=True)
class _Address:
    host: str
    port: int
    token: str

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def page(self) -> str:
        return f"{self.url}/zero-mem" + (f"?token={self.token}" if self.token else "")


def _pointers(address: _Address, mode: str) -> str:
    """Say how each client is pointed here."""
    does = "nothing is changed" if mode == "observe" else "tool results are offloaded"
    return "\n".join(
        [
            f"zero-mem proxy on {address.url}, mode {mode}: {does}",
            f"live page    {address.page}",
            f"Claude Code  export ANTHROPIC_BASE_URL={address.url}",
            f"OpenAI SDK   export OPENAI_BASE_URL={address.url}/v1",
            'Codex        in ~/.codex/config.toml: model_provider = "zero-mem", and',
            "             [model_providers.zero-mem]",
            f'             base_url = "{address.url}/v1", wire_api = "responses",',
            '             env_key = "OPENAI_API_KEY", supports_websockets = false',
        ]
    )
