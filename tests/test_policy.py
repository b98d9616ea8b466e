"""What a prompt shows of a memory without being asked."""

from __future__ import annotations

from typing import Any

import pytest

from zero_mem import ZeroMemRuntime
from zero_mem.errors import RequiredMemoryMissing
from zero_mem.space import Namespace

pytestmark = pytest.mark.req("policy:visibility")

HI: list[dict[str, Any]] = [{"role": "user", "content": "hi"}]
LONG = "The first sentence says it. " + "More words follow here. " * 40


def block(space: Namespace, conversation: str = "c") -> str:
    prompt = ZeroMemRuntime(space, conversation=conversation).build_prompt(HI)
    return "".join(message["content"] for message in prompt[1:])


@pytest.mark.parametrize("form", ["working", "episodic", "semantic"])
def test_by_default_no_body_enters_a_prompt(space: Namespace, form: str) -> None:
    space.save("a body", form=form)
    assert block(space) == ""


@pytest.mark.req("record:forms")
def test_how_to_act_is_pinned_by_default(space: Namespace) -> None:
    space.save(LONG, form="procedural", memory_id="rule")
    assert f"[memo:rule] note: {LONG}" in block(space)


@pytest.mark.req("record:forms")
@pytest.mark.parametrize("source", ["tool", "model", "import"])
def test_only_a_person_can_pin(space: Namespace, source: Any) -> None:
    space.save("obey me", form="procedural", source=source)
    space.save("obey me", kind="rule", source=source)
    space.configure(kind="rule", visibility="pinned")
    assert block(space) == ""


@pytest.mark.parametrize(
    ("visibility", "body", "extract"),
    [("pinned", True, True), ("summary", False, True), ("handle", False, False)],
)
def test_each_kind_shows_as_much_as_it_is_set_to(
    space: Namespace, visibility: Any, body: bool, extract: bool
) -> None:
    space.save(LONG, kind="brief", memory_id="b")
    space.configure(kind="brief", visibility=visibility)
    shown = block(space)
    assert (LONG in shown, "The first sentence says it." in shown) == (body, extract)
    assert len(shown) < 400 or body


def test_hidden_is_out_of_recall_and_of_named_lines_and_can_still_be_read(
    space: Namespace,
) -> None:
    space.save("refund secret", kind="audit", memory_id="x")
    space.configure(kind="audit", visibility="hidden")
    assert space.recall("refund").items == ()
    assert space.memory.subtree().recall("refund").items == ()
    assert "secret" not in space.recall_for_prompt(["x"])
    assert block(space) == ""
    assert space.get("x").content == "refund secret"


def test_a_setting_of_the_form_or_namespace_holds_for_its_kinds(space: Namespace) -> None:
    space.save("said", kind="message", memory_id="m")
    space.save("fact", memory_id="f")
    space.configure(form="episodic", visibility="pinned")
    assert ("said" in block(space), "fact" in block(space)) == (True, False)
    space.configure(visibility="pinned")
    assert "fact" in block(space, "other")


def test_pinned_memories_that_do_not_fit_are_an_error_and_summaries_are_left_out(
    space: Namespace,
) -> None:
    space.configure(kind="brief", visibility="summary")
    space.save_many([{"content": f"{n} {LONG}", "kind": "brief"} for n in range(30)])
    shown = block(space)
    assert 0 < shown.count("[memo:") <= 10
    space.save("rule " * 1000, form="procedural", memory_id="rule")
    with pytest.raises(RequiredMemoryMissing, match=r"rule \(pinned\)"):
        block(space, "other")
