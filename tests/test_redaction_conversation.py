"""A conversation whose tool results, questions and calls hold secrets: what the store keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conversations import FORMATS, request, response, result_texts, results, turn, user
from secret_samples import GITHUB, PASSWORD, PEM
from test_streaming import answered, run_stream
from upstream import by_three

from zero_mem import Memory, MemoryController, handles
from zero_mem.controller.messages import WireFormat

pytestmark = pytest.mark.req("prod:redact")

each_format = pytest.mark.parametrize("wire_format", FORMATS)
BODY = "\n".join(
    [
        *(f"host-{n:03d} is up, load {n % 7}.{n % 10}, region eu-{n % 3}" for n in range(120)),
        f"deploy token for host-007: {GITHUB}",
        PEM,
        "host-999 is down since 09:30",
    ]
)
HALF = GITHUB[:20].encode()
KEY_LINE = PEM.splitlines()[1][:30].encode()


def stored(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


def asked(wire_format: WireFormat, body: Any = BODY) -> dict[str, Any]:
    return request(
        wire_format,
        user("Which host is down, and what is the deploy token for host-007?"),
        turn(wire_format, c1=("orders", {})),
        results(wire_format, c1=body),
    )


@each_format
@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_a_secret_in_a_result_is_nowhere_in_the_store(
    tmp_path: Path, wire_format: WireFormat, share: float
) -> None:
    with Memory.open(f"sqlite:///{tmp_path / 'm.db'}") as memory:
        space = memory.namespace("acme")
        controller = MemoryController(space, conversation="c-1", share=share)
        prepared = controller.prepare(asked(wire_format), wire_format)
        (shown,) = result_texts(dict(prepared), wire_format)
        assert controller.prepare(asked(wire_format), wire_format) == prepared
        (record,) = space.each({"kind": "tool_result"})
        assert "[redacted:github_token]" in record.text
        assert "[redacted:private_key]" in record.text
        assert "host-999 is down" in record.text
        # What was decided is made of what is stored, in the prompt too.
        if handles.find(shown):
            assert GITHUB not in shown
        values = [space.decisions(scope) for scope in space.scopes()]
        assert GITHUB not in repr(values)
        assert PEM.splitlines()[1] not in repr(values)
        assert HALF not in stored(tmp_path)
        assert KEY_LINE not in stored(tmp_path)
    assert HALF not in stored(tmp_path)


@each_format
def test_a_kept_conversation_says_the_same_after_a_restart(
    tmp_path: Path, wire_format: WireFormat
) -> None:
    url = f"sqlite:///{tmp_path / 'm.db'}"
    said = []
    for _ in range(2):
        with Memory.open(url) as memory:
            controller = MemoryController(memory.namespace("acme"), conversation="c-1", share=0.1)
            said.append(controller.prepare(asked(wire_format), wire_format))
    assert said[0] == said[1]


@each_format
def test_what_the_model_wrote_is_given_back_to_it_byte_for_byte(
    tmp_path: Path, wire_format: WireFormat
) -> None:
    """A provider checks signatures over its own output, so the history that it gets is its own."""
    with Memory.open(f"sqlite:///{tmp_path / 'm.db'}") as memory:
        controller = MemoryController(memory.namespace("acme"), conversation="c-1", share=0.1)
        said = turn(wire_format, f"The token is {GITHUB}.")
        answer = response(wire_format, said)
        controller.prepare(asked(wire_format), wire_format)
        assert controller.absorb(answer, wire_format).response == answer
        longer = asked(wire_format)
        field = "input" if wire_format == "openai_responses" else "messages"
        longer[field] = [*longer[field], *said, user("thanks")]
        prepared = dict(controller.prepare(longer, wire_format))
        assert said[0] in prepared[field]
        # What the host sees and sends is not kept.
        assert HALF not in stored(tmp_path)


@each_format
def test_a_note_that_arrives_in_pieces_is_stored_without_its_secrets(
    tmp_path: Path, wire_format: WireFormat
) -> None:
    """No piece of the stream has the secret; the note that is made of them has."""
    with Memory.open(f"sqlite:///{tmp_path / 'm.db'}") as memory:
        space = memory.namespace("acme")
        controller = MemoryController(space, conversation="c-1")
        note = f"the token is {GITHUB} and the password is {PASSWORD}, until Friday"
        call = {"id": "n1", "name": "memory_note", "arguments": {"text": note, "key": GITHUB}}
        responses = [answered(wire_format, [call], 0), answered(wire_format, [{"text": "ok"}], 1)]
        asked = request(wire_format, user("keep this"), stream=True)
        assert not any(GITHUB in piece for piece in by_three(note))
        run_stream(controller, asked, wire_format, responses, by_three)
        (record,) = space.each({"kind": "note"})
        assert record.text == (
            "the token is [redacted:github_token] and the password is [redacted:password],"
            " until Friday"
        )
        assert GITHUB not in (record.key or "")
        assert space.get(record.memory_id).text == record.text
