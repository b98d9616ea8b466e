"""Recall over graph and hierarchy, on real stores: what each part is for."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from zero_mem import Memory
from zero_mem.errors import InvalidInput
from zero_mem.index.units import Unit
from zero_mem.recall import corpora as corpora_module
from zero_mem.recall.configuration import DEFAULT, PAPER, Configuration
from zero_mem.recall.corpus import Corpus
from zero_mem.recall.pipeline import rank
from zero_mem.space import Namespace
from zero_mem.text.segment import content_terms
from zero_mem.types import Recall

DAY = datetime(2024, 3, 4, 9, tzinfo=UTC)

TALK = (
    ("Ann", "How was the trip to the lighthouse with your brother?"),
    ("Ben", "Wonderful, and he took hundreds of photographs of the lighthouse."),
    ("Ann", "Which camera does he use for the photographs?"),
    ("Ben", "The old one that our uncle left him."),
    ("Ann", "Your uncle who repaired clocks?"),
    ("Ben", "Yes, the uncle with the clocks. The workshop is closed now."),
)
OTHER_TALK = (
    ("Ann", "Did the garden survive the storm?"),
    ("Ben", "The garden did, the greenhouse lost two panes in the storm."),
    ("Ann", "Can the panes of the greenhouse be replaced?"),
    ("Ben", "A glazier comes on Monday to replace the panes."),
)


def save_talk(
    space: Namespace, session: str, talk: tuple[tuple[str, str], ...], start: datetime
) -> None:
    space.save_many(
        {
            "content": text,
            "kind": "message",
            "session": session,
            "speaker": speaker,
            "memory_id": f"{session}-{number}",
            "created_at": start + timedelta(minutes=number),
        }
        for number, (speaker, text) in enumerate(talk)
    )


@pytest.fixture
def talks(space: Namespace) -> Namespace:
    """Two conversations, in different months."""
    save_talk(space, "s1", TALK, DAY)
    save_talk(space, "s2", OTHER_TALK, DAY + timedelta(days=40))
    return space


def ids(recall: Recall) -> list[str]:
    return [item.memory_id for item in recall.items]


@pytest.mark.req("recall:dual-view")
def test_a_short_answer_is_found_by_the_words_of_its_question(talks: Namespace) -> None:
    query = "Which camera is used for the photographs?"
    assert "s1-3" in ids(talks.recall(query))[:3]
    alone = replace(DEFAULT, neighbours=0, session=0, episode=0)
    assert "s1-3" not in ids(talks.recall(query, profile=alone))


@pytest.mark.req("recall:dual-view")
def test_a_named_speaker_comes_first(talks: Namespace) -> None:
    assert ids(talks.recall("What did Ben say about the panes?"))[0] in ("s2-1", "s2-3")
    assert ids(talks.recall("What did Ann ask about the panes?"))[0] == "s2-2"


@pytest.mark.req("recall:dual-view", "index:languages")
def test_a_time_phrase_prefers_its_days_and_filters_nothing(space: Namespace) -> None:
    for number, month in enumerate((1, 5, 9)):
        at = datetime(2024, month, 10, tzinfo=UTC)
        space.save("paid the rent 交了房租", memory_id=f"m{month}", created_at=at)
        space.save(f"other thing {number}", created_at=at)
    asked = datetime(2024, 9, 30, tzinfo=UTC)
    assert ids(space.recall("the rent in May", asked_at=asked))[0] == "m5"
    assert ids(space.recall("一月中旬交的房租", asked_at=asked))[0] == "m1"
    assert ids(space.recall("the rent three weeks ago", asked_at=asked))[0] == "m9"
    assert sorted(ids(space.recall("the rent in May", asked_at=asked)))[:1] == ["m1"]


@pytest.mark.req("recall:dual-view")
def test_a_question_of_time_alone_finds_what_happened_then(space: Namespace) -> None:
    for day in (1, 11, 21):
        at = datetime(2024, 6, day, tzinfo=UTC)
        space.save(f"number {day}", memory_id=f"d{day}", created_at=at)
    asked = datetime(2024, 6, 22, tzinfo=UTC)
    assert ids(space.recall("yesterday", asked_at=asked)) == ["d21"]


@pytest.mark.req("recall:dual-view")
def test_a_shared_name_leads_from_one_document_to_the_next(space: Namespace) -> None:
    space.save("Brand (play). Brand is a play by Henrik Ibsen, staged in Stockholm.", memory_id="a")
    space.save("Henrik Ibsen. Henrik Ibsen was born in Skien, a town of Norway.", memory_id="b")
    for number in range(12):
        space.save(
            f"Town {number}. The country town Place{number} lies near Lake Number{number}.",
            memory_id=f"t{number}",
        )
    query = "In which country was the author of the play Brand at home?"
    assert ids(space.recall(query))[:2] == ["a", "b"]
    plain = ids(space.recall(query, profile="bm25"))
    assert "b" not in plain[:2]


@pytest.mark.req("recall:dual-view", "index:languages")
def test_the_newer_of_two_facts_comes_first_and_the_older_says_so(space: Namespace) -> None:
    space.save("The chief executive of Nordlicht is Maria Holm.", memory_id="old", created_at=DAY)
    later = DAY + timedelta(days=9)
    space.save("The chief executive of Nordlicht is Jon Berg.", memory_id="new", created_at=later)
    space.save("The chief executive of Südwind is Ada Krüger.", memory_id="other", created_at=later)
    recall = space.recall("Who is the chief executive of Nordlicht?", explain=True)
    assert ids(recall)[:2] == ["new", "old"]
    by_id = {item.memory_id: item for item in recall.items}
    assert by_id["old"].superseded_by == "new"
    assert by_id["new"].superseded_by == by_id["other"].superseded_by == ""
    assert "superseded by new" in recall.text


@pytest.mark.req("recall:dual-view")
def test_a_newer_fact_that_has_expired_replaces_nothing(space: Namespace) -> None:
    space.save("The code of the back door is 1234 green.", memory_id="old", created_at=DAY)
    space.save("The code of the back door is 9999 green.", memory_id="new", expires_in=60)
    later = space.memory.now() + timedelta(seconds=120)
    recall = space.recall("code of the back door", asked_at=later)
    assert ids(recall) == ["old"]
    assert recall.items[0].superseded_by == ""


@pytest.mark.req("recall:dual-view")
def test_a_live_turn_leaves_its_own_conversation_out(talks: Namespace) -> None:
    query = "And the panes of the greenhouse?"
    assert set(ids(talks.recall(query))) & {"s2-1", "s2-2", "s2-3"}
    save_talk(talks, "s3", (("Ann", "The greenhouse needs panes"),), DAY + timedelta(days=50))
    live = ids(talks.recall(query, session="s3", speaker="Ann"))
    assert live[0].startswith("s2")
    assert not [name for name in live if name.startswith("s3")]


@pytest.mark.req("recall:dual-view")
def test_single_facts_in_one_session_are_ranked_by_their_own_words(space: Namespace) -> None:
    facts = (
        "The plumber is called Ruiz.",
        "Grandmother's ring lies in the blue box.",
        "Lena moved to Graz.",
        "The boiler was serviced in May.",
        "Our cat is afraid of umbrellas.",
        "The library card expires soon.",
    )
    save_talk(space, "diary", tuple(("", fact) for fact in facts), DAY)
    plain = space.recall("Where is the ring?", profile="bm25")
    assert ids(space.recall("Where is the ring?")) == ids(plain) == ["diary-1"]


@pytest.mark.req("recall:dual-view")
def test_the_papers_profile_gives_five_items_of_two_views(talks: Namespace) -> None:
    talks.save_many({"content": f"uncle and clocks, part {number}"} for number in range(9))
    recall = talks.recall("the uncle with the clocks", profile="paper", explain=True)
    assert len(recall.items) == 5
    assert {"hierarchy", "graph"} <= set().union(*(item.parts for item in recall.items))
    assert len(talks.recall("the uncle with the clocks", profile="paper", limit=7).items) == 7


@pytest.mark.req("recall:dual-view")
def test_an_unknown_profile_is_refused(space: Namespace) -> None:
    with pytest.raises(InvalidInput, match="default, paper, bm25"):
        space.recall("x", profile="best")


@pytest.mark.req("recall:dual-view", "recall:explicit")
def test_explain_gives_the_parts_of_each_item_and_of_what_just_missed(talks: Namespace) -> None:
    recall = talks.recall("Which photographs did Ben take?", explain=True, budget=60)
    assert all(item.parts and item.reason for item in (*recall.items, *recall.near_misses))
    assert recall.near_misses
    assert any("x speaker" in item.parts for item in recall.items)
    plain = talks.recall("Which photographs did Ben take?", budget=60)
    assert ids(plain) == ids(recall)
    assert all(not item.parts and not item.reason for item in plain.items)


@pytest.mark.req("recall:dual-view", "recall:fresh")
def test_recall_follows_every_change(talks: Namespace) -> None:
    query = "the walrus in the harbour"
    assert "w" not in ids(talks.recall(query))
    talks.save("A walrus slept in the harbour.", memory_id="w")
    assert ids(talks.recall(query))[0] == "w"
    talks.update("w", content="A seal slept at the beach.")
    assert "w" not in ids(talks.recall(query))
    talks.update("w", content="The walrus is back in the harbour.")
    assert ids(talks.recall(query))[0] == "w"
    talks.archive("w")
    assert "w" not in ids(talks.recall(query))
    talks.restore("w")
    assert ids(talks.recall(query))[0] == "w"
    talks.delete("w")
    assert "w" not in ids(talks.recall(query))
    talks.save("The walrus, once more.", memory_id="w")
    assert ids(talks.recall(query))[0] == "w"
    talks.purge("w")
    assert "w" not in ids(talks.recall(query))


@pytest.mark.req("recall:fresh")
def test_what_another_process_wrote_is_found(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'shared.db'}"
    with Memory.open(url) as mine, Memory.open(url) as other:
        space = mine.namespace("a")
        space.save("the first parcel", memory_id="1st")
        assert ids(space.recall("parcel")) == ["1st"]
        other.namespace("a").save("the second parcel", memory_id="2nd")
        other.namespace("a").delete("1st")
        assert ids(space.recall("parcel")) == ["2nd"]


@pytest.mark.req("recall:fresh", "expire:hidden")
def test_expiry_is_judged_at_each_read(space: Namespace, clock: Any) -> None:
    space.save("parcel for a moment", memory_id="x", expires_in=10)
    assert ids(space.recall("parcel")) == ["x"]
    clock.advance(timedelta(seconds=10))
    assert ids(space.recall("parcel")) == []


@pytest.mark.req("recall:fresh")
def test_a_corpus_made_anew_gives_what_a_followed_one_gives(memory: Memory) -> None:
    space = memory.namespace("followed")
    save_talk(space, "s1", TALK, DAY)
    space.recall("lighthouse")
    save_talk(space, "s2", OTHER_TALK, DAY + timedelta(days=40))
    space.update("s1-1", content="He took pictures of the lighthouse and of gulls.")
    space.delete("s1-4")
    questions = ("gulls at the lighthouse", "What did Ann ask?", "the panes in April")
    followed = [[(i.memory_id, i.score) for i in space.recall(q).items] for q in questions]
    memory.corpora.forget(space.path)
    anew = [[(i.memory_id, i.score) for i in space.recall(q).items] for q in questions]
    assert [[name for name, _ in items] for items in followed] == [
        [name for name, _ in items] for items in anew
    ]
    assert [score for items in followed for _, score in items] == pytest.approx(
        [score for items in anew for _, score in items], abs=0.02
    )


@pytest.fixture
def large(space: Namespace, monkeypatch: pytest.MonkeyPatch) -> Namespace:
    """Make a namespace that counts as too large to rank as a whole."""
    monkeypatch.setattr(corpora_module, "LARGEST", 3)
    save_talk(space, "s1", TALK, DAY)
    save_talk(space, "s2", OTHER_TALK, DAY + timedelta(days=40))
    return space


@pytest.mark.req("recall:dual-view", "limits:two-sizes")
def test_a_large_namespace_is_ranked_among_its_candidates(large: Namespace) -> None:
    assert "s1-3" in ids(large.recall("Which camera is used for the photographs?"))[:3]
    large.delete("s1-2")
    assert "s1-2" not in ids(large.recall("Which camera is used for the photographs?"))
    assert len(ids(large.recall("the uncle", limit=50))) >= 2


@pytest.mark.req("recall:dual-view", "index:filters")
def test_a_filter_and_a_state_hold_in_every_path(talks: Namespace) -> None:
    recall = talks.recall("photographs and panes", where={"session": "s2"})
    assert ids(recall)
    assert all(name.startswith("s2") for name in ids(recall))
    talks.archive("s2-2")
    assert ids(talks.recall("panes", where={"state": "archived"})) == ["s2-2"]


@pytest.mark.req("index:any-text", "recall:dual-view")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("lighthouse " * 4546, True),  # 50,000 characters
        ("what is it that they are", False),
        ("🙂🙃", False),
        ("*** () \x00", False),
        ("lighthouse 灯塔 の أين", True),
        ("上周五 yesterday", False),
    ],
)
def test_a_strange_query_gives_a_sensible_answer(talks: Namespace, query: str, found: bool) -> None:
    for profile in ("default", "paper"):
        recall = talks.recall(query, profile=profile, asked_at=DAY + timedelta(days=400))
        assert bool(recall.items) == found


@pytest.mark.req("index:any-text", "recall:dual-view")
def test_an_empty_query_is_refused(talks: Namespace) -> None:
    with pytest.raises(InvalidInput, match="empty"):
        talks.recall("  ")


@pytest.mark.req("recall:dual-view")
@pytest.mark.parametrize("profile", ["default", "paper", "bm25"])
def test_a_namespace_with_one_record_finds_it(space: Namespace, profile: str) -> None:
    space.save("用户正在申请退款 and waits", memory_id="only", session="s", speaker="Ann")
    assert ids(space.recall("退款", profile=profile)) == ["only"]
    assert ids(space.recall("what does Ann wait for", profile=profile)) == ["only"]
    assert ids(space.recall("zebra", profile=profile)) == []


@pytest.mark.req("recall:dual-view", "index:languages")
def test_both_languages_live_in_one_namespace(space: Namespace) -> None:
    space.save("Lena moved to Graz in autumn.", memory_id="en")
    space.save("丽娜秋天搬到了格拉茨。", memory_id="zh")
    assert ids(space.recall("Where did Lena move?"))[0] == "en"
    assert ids(space.recall("丽娜搬到哪里了？"))[0] == "zh"


@pytest.mark.req("recall:dual-view")
def test_two_runs_give_the_same(talks: Namespace) -> None:
    query = "What did Ben say about photographs last month?"
    first, second = (talks.recall(query, explain=True, asked_at=DAY) for _ in range(2))
    assert first == second


@pytest.mark.req("index:any-text", "recall:dual-view")
def test_a_question_of_emoji_or_of_stop_words_finds_what_holds_them(space: Namespace) -> None:
    space.save("We won 🏆 today.", memory_id="won")
    space.save("to be or not to be", memory_id="play")
    space.save("Nothing else.", memory_id="other")
    assert ids(space.recall("🏆")) == ["won"]
    assert ids(space.recall("to be or not")) == ["play"]


@pytest.mark.req("index:any-text", "recall:dual-view", "index:languages")
@pytest.mark.parametrize(
    "text",
    [
        " ".join(f"w{n}" for n in range(9000)) + " lighthouse",
        "灯塔旁边的老房子" * 6250,
        "In May, after the trip to Rome, before the wedding, " * 1000 + "lighthouse",
        "A" * 50_000 + " lighthouse",
        "@" * 50_000 + " lighthouse",
    ],
    ids=["words", "Chinese", "phrases", "one word", "signs"],
)
def test_a_question_of_50_000_characters_is_answered(talks: Namespace, text: str) -> None:
    talks.save("灯塔旁边有一座老房子。", memory_id="zh")
    assert len(text) >= 50_000
    found = ids(talks.recall(text, asked_at=DAY + timedelta(days=50)))
    assert found
    assert (found[0] == "zh") == ("灯塔" in text)


@pytest.mark.req("index:any-text", "recall:dual-view")
@pytest.mark.parametrize("config", [DEFAULT, PAPER], ids=["default", "paper"])
def test_units_without_a_time_are_ranked_by_the_rest(config: Configuration) -> None:
    texts = ("Ann paid the rent in May.", "Ben fed the cat.", "Ann paid for the boat.")
    units = [
        Unit(position=n, terms=tuple(content_terms(text)), text=text, session="s", speaker="Ann")
        for n, text in enumerate(texts)
    ]
    question = "What did Ann pay yesterday, after the trip, for the boat?"
    order = list(rank(Corpus(units), question, config=config, asked_at=DAY).order())
    assert order[0] == 2
    assert list(rank(Corpus([]), question, config=config).order()) == []


@pytest.mark.req("recall:fresh")
def test_no_more_units_are_kept_than_allowed() -> None:
    with Memory.open("memory://") as memory:
        spaces = [memory.namespace("acme", str(number)) for number in range(4)]
        for space in spaces:
            space.save_many([{"content": f"order {n}"} for n in range(10)])
        memory.corpora.most = 25
        first = [space.recall("order 7").items[0].memory_id for space in spaces]
        assert memory.corpora.units == 20
        assert [space.recall("order 7").items[0].memory_id for space in spaces] == first
        spaces[3].save_many([{"content": f"order {n}"} for n in range(10, 22)])
        spaces[3].recall("order 7")
        assert memory.corpora.units == 22  # the one that is asked stays, whatever its size
        memory.corpora.forget(spaces[3].path)
        memory.corpora.forget(spaces[3].path)
        assert memory.corpora.units == 0
