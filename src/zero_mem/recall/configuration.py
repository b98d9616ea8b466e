"""The weights of recall: one set of defaults for all uses, and the paper's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from zero_mem.errors import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """How much each part of recall counts; 0 (for a factor: 1) switches a part off.

    Parts are added after each was divided by its highest score for the query, so a weight
    compares with the score of a unit's own text, which counts 1.

    Attributes:
        routed: Fuse the two views as the paper does, with `rho`, instead of adding parts.
        rho: The weight of the view that the route puts first.
        gamma: How far activation flows from the query's own names and units, 0 to 1.
        activation: How many steps activation spreads from name to name.
        neighbours: Share of a short unit's score that its thread's neighbours have.
        short: Up to so many terms a unit needs its neighbours; a longer one needs them less.
        session: The whole session's score.
        episode: The score of the up to eight units around it without a break.
        speaker: Factor of the units of a speaker whom the query names.
        counterparty: Factor of the units exchanged with someone whom the query names.
        dates: How much more a unit at the query's time counts.
        events: How much more a unit counts at a time that the query counts from an event.
        phrases: Weight of the words of a time phrase, for which `dates` stands.
        recency: How much more a unit of today counts, for the next turn of a conversation.
        recency_days: After so many days that is half.
        asker: Factor of what the one who speaks now said before, for such a turn.
        opening: Factor of the first unit of a session, for such a turn.
        previous: Weight of the words of the turns before, for such a turn.
        graph: Personalised PageRank over names, where units form no threads.
        bridges: What a unit adds to the query's best ones through a shared name.
        closure: What a unit of the same days adds by its likeness to the best ones.
        closure_seeds: How many best ones that is measured against.
        calibration: How much more evidence counts that holds the kind of value asked for.
        supersede: Put the newer of two contradicting facts first.
        gate: Leave the thread's parts out where the texts of a thread have nothing in common.
        dense: Weight of the dense score, where an embedder is set.
        items: Most items, None for the namespace's own setting.
    """

    routed: bool = False
    rho: float = 0.6
    gamma: float = 0.6
    activation: int = 0
    neighbours: float = 0.7
    short: float = 30.0
    session: float = 0.35
    episode: float = 0.1
    speaker: float = 2.0
    counterparty: float = 1.5
    dates: float = 2.0
    events: float = 0.5
    phrases: float = 0.3
    recency: float = 2.0
    recency_days: float = 5.0
    asker: float = 1.5
    opening: float = 1.5
    previous: float = 0.2
    graph: float = 1.0
    bridges: float = 1.0
    closure: float = 1.0
    closure_seeds: int = 5
    calibration: float = 0.0
    supersede: bool = True
    gate: bool = True
    dense: float = 0.8
    items: int | None = None


DEFAULT = Configuration()

PLAIN = Configuration(
    neighbours=0,
    episode=0,
    session=0,
    speaker=1,
    counterparty=1,
    dates=0,
    events=0,
    recency=0,
    asker=1,
    opening=1,
    previous=0,
    graph=0,
    bridges=0,
    closure=0,
    calibration=0,
    supersede=False,
    dense=0,
)
"""BM25 and nothing else."""

PAPER = Configuration(
    routed=True,
    rho=0.6,
    gamma=0.6,
    activation=2,
    speaker=1.2,
    counterparty=1.2,
    recency=0,
    asker=1,
    opening=1,
    previous=0,
    calibration=0.05,
    supersede=False,
    gate=False,
    dense=1,
    items=5,
)
"""The paper's settings (arXiv:2607.29377: rho = gamma = 0.6, five items)."""

PROFILES: Mapping[str, Configuration] = {"default": DEFAULT, "paper": PAPER, "bm25": PLAIN}


def configuration(profile: str | Configuration) -> Configuration:
    """Give the configuration that a profile's name stands for.

    Raises:
        InvalidInput: No profile has that name.
    """
    if isinstance(profile, Configuration):
        return profile
    found = PROFILES.get(profile)
    if found is None:
        raise InvalidInput(f"profile is one of {', '.join(PROFILES)}, not {profile!r}")
    return found
