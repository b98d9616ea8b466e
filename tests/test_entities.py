"""Names are found by how they are written, in both languages, without a dictionary."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zero_mem import Memory
from zero_mem.errors import InvalidInput, MissingExtra
from zero_mem.index.entities import EntityIndex, names_of, title_of
from zero_mem.index.units import Unit, label_of
from zero_mem.models.extractors import SpacyEntities, extractor_named
from zero_mem.recall.profile import read_question
from zero_mem.text.entities import FINDERS, Entity, entities


def names(text: str) -> set[str]:
    return {entity.name for entity in entities(text)}


@pytest.mark.req("recall:dual-view", "index:languages")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I met Judith Viorst in Newark.", {"judith viorst", "newark"}),
        (
            "at the University of North Texas. It is large.",
            {"university of north texas"},
        ),
        ("Written by G. Stanley Hall", {"g. stanley hall"}),
        ("We read “The Old Man and the Sea” and 《三体》", {"三体", "the old man and the sea"}),
        ("order POL-358 for @dana", {"pol-358", "@dana"}),
        ("请联系李薇老师和张经理", {"李薇老师", "张经理"}),
        ("paid 48200 in all", {"48200"}),
        ("nothing here has a name", set()),
    ],
)
def test_a_text_names_what_it_writes_as_names(text: str, expected: set[str]) -> None:
    assert expected <= names(text)
    if not expected:
        assert names(text) == set()


@pytest.mark.req("recall:dual-view")
def test_a_greeting_is_no_name_and_what_follows_it_is() -> None:
    assert names("Hey Mel! Thanks so much.") == {"mel"}


def index_of(*texts: str) -> EntityIndex:
    units = [Unit(position=n, terms=(), text=text) for n, text in enumerate(texts, start=1)]
    return EntityIndex(units, [names_of(text) for text in texts])


@pytest.mark.req("recall:dual-view")
def test_a_word_that_begins_a_sentence_is_a_name_only_where_another_text_says_so() -> None:
    index = index_of("Umbrellas are wet.", "Rover sleeps.", "The dog is called Rover.")
    assert "umbrellas" not in index.units
    assert index.units["rover"] == [1, 2]


@pytest.mark.req("recall:dual-view")
def test_a_title_is_a_name_and_leads_to_its_text() -> None:
    index = index_of("Brand (play). A play by Henrik Ibsen.", "Henrik Ibsen wrote Brand.")
    assert index.titled["brand"] == [0]
    assert index.holding("henrik ibsen", most=10) == {0, 1}
    assert index.holding("brand", most=0) == {0}


@pytest.mark.req("recall:dual-view", "index:languages")
@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("发送 李秀英: 我：妈，我到了", "李秀英"),
        ("通话 钱永强 +8613873111234 接通", "钱永强"),
        ("Ann: see you at nine", "Ann"),
        ("Hey Mel! Good to see you", ""),
        ("no label here", ""),
    ],
)
def test_a_text_begins_with_whom_it_was_exchanged_with(text: str, label: str) -> None:
    assert label_of(text) == label


@pytest.mark.req("recall:dual-view")
def test_a_long_first_sentence_is_no_title() -> None:
    assert title_of("Linville Falls Tavern. A house.") == "linville falls tavern"
    assert title_of("this is a long first sentence that says very much about all. Then.") == ""


@pytest.mark.req("index:any-text")
@given(st.text())
def test_no_text_breaks_the_rules(text: str) -> None:
    assert all(entity.name for entity in entities(text))
    assert label_of(text) == label_of(text)
    assert title_of(text) == title_of(text).lower()


# Kinds, both languages

KINDS = [
    ("We met Judith Viorst.", "judith viorst", "name"),
    ("She read “The Old Man and the Sea”.", "the old man and the sea", "title"),
    ("他读完了《三体》。", "三体", "title"),
    ("ask @dana about it", "@dana", "mention"),
    ("the order POL-358 is late", "pol-358", "id"),
    ("订单 POL-358 晚了", "pol-358", "id"),
    ("paid 48200 in all", "48200", "number"),
    ("一共付了 48200 元", "48200", "number"),
    ("born on 7 May 2023", "2023-05-07", "date"),
    ("born May 7th, 2023", "2023-05-07", "date"),
    ("since 2023-05-07", "2023-05-07", "date"),
    ("2023年5月7日出生", "2023-05-07", "date"),
    ("请联系李薇老师", "李薇", "person"),
    ("我同事李小龙和客户王芳，来了", "李小龙", "person"),
    ("我同事李小龙和客户王芳，来了", "王芳", "person"),
]


@pytest.mark.req("recall:dual-view", "index:languages")
@pytest.mark.parametrize(("text", "name", "kind"), KINDS)
def test_a_name_tells_what_kind_it_is(text: str, name: str, kind: str) -> None:
    assert (name, kind) in {(entity.name, entity.kind) for entity in entities(text)}


@pytest.mark.req("recall:dual-view", "index:languages")
@pytest.mark.parametrize("later", [True, False])
def test_a_speaker_is_a_name_in_what_others_write(later: bool) -> None:
    about = Unit(position=1, terms=(), text="昨天林晓燕没有来。")
    own = Unit(position=2, terms=(), text="我病了。", speaker="林晓燕")
    order = [about, own] if later else [own, about]
    index = EntityIndex(order, [names_of(unit.text) for unit in order])
    assert index.units["林晓燕"] == [order.index(about)]


# Extractors beside the rules


class _Colours:
    """Takes colours for names: something that no rule would."""

    name = "colours"

    def entities(self, text: str) -> Iterator[Entity]:
        yield from (Entity(word) for word in text.lower().split() if word in ("teal", "ochre"))


DOCUMENTS = (
    "The oldest house in Delft has a door of teal wood and an iron lock.",
    "A door of teal wood keeps mice away, wrote the carpenter Anton Vos.",
    "Sailors paint their boats in ochre and tar, says the harbour of Hoorn.",
    "The ochre pit near Hoorn was closed by Maria Kamp in spring.",
)


@pytest.mark.req("recall:dual-view")
def test_an_extractor_of_ones_own_reads_records_and_questions() -> None:
    with Memory.open("memory://", extractor=_Colours()) as memory:
        space = memory.namespace("a")
        space.save_many({"content": text} for text in DOCUMENTS)
        space.recall("teal")
        with memory.transaction() as transaction:
            row = transaction.namespace(("a",))
            assert row is not None
            with memory.corpora.corpus(transaction, row) as corpus:
                assert corpus.entities.units["teal"] == [0, 1]
                assert read_question(corpus, "Which teal door?").names == {"teal"}
                assert corpus.extractor.name == "rules+colours"


@pytest.mark.req("recall:dual-view", "index:languages")
def test_jieba_knows_chinese_people_and_places() -> None:
    pytest.importorskip("rjieba", reason="rjieba is not installed (the extra `jieba`)")
    found = {(e.name, e.kind) for e in extractor_named("jieba").entities("我和张伟在北京大学见面")}
    assert {("张伟", "person"), ("北京大学", "group")} <= found
    assert list(extractor_named("jieba").entities("no Chinese at all")) == []


@pytest.mark.req("recall:dual-view")
def test_spacy_entities_are_taken_over_by_kind() -> None:
    def pipeline(text: str) -> SimpleNamespace:
        labels = (("Ada  Lovelace", "PERSON"), ("two", "CARDINAL"), ("London", "GPE"))
        return SimpleNamespace(ents=[SimpleNamespace(text=t, label_=label) for t, label in labels])

    found = list(SpacyEntities(pipeline).entities("any"))
    assert [(e.name, e.kind) for e in found] == [("ada lovelace", "person"), ("london", "place")]


@pytest.mark.req("recall:dual-view")
def test_a_real_spacy_pipeline_can_be_given() -> None:
    spacy = pytest.importorskip("spacy", reason="spaCy is not installed (the extra `spacy`)")
    pipeline = spacy.blank("en")
    pipeline.add_pipe("entity_ruler").add_patterns([{"label": "PERSON", "pattern": "Ada"}])
    found = SpacyEntities(pipeline)
    assert found.name == "spacy:en_pipeline"
    assert [entity.name for entity in found.entities("It was Ada.")] == ["ada"]


@pytest.mark.req("recall:dual-view")
@pytest.mark.parametrize(("name", "package"), [("jieba", "rjieba"), ("spacy", "spacy")])
def test_an_extractor_without_its_package_names_the_extra(
    name: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"zero-mem\[{name}\]"):
        Memory.open("memory://", extractor=name)


@pytest.mark.req("recall:dual-view")
def test_an_unknown_extractor_is_refused() -> None:
    with pytest.raises(InvalidInput, match="jieba, spacy"):
        Memory.open("memory://", extractor="stanza")


PARTS = (
    "Ann Lee|of|«Été»|Ø|'The Sea'|\"a b\"|「三体」|@dana|#tag|POL-358|a_1|٣٤٥٦|48200|2024-05-07"
    "|5 May 2024|2024年5月7日|李薇老师|客户张伟，| |. |\n|x|\ud800"
)
PIECES = st.sampled_from(PARTS.split("|"))


@pytest.mark.req("recall:dual-view")
@given(st.lists(PIECES | st.text(max_size=3), max_size=8).map("".join))
def test_no_text_with_a_name_is_passed_over(text: str) -> None:
    for needed, found in FINDERS:
        assert needed.search(text) or not list(found(text))
