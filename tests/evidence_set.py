"""A small set of evidence in both languages, written for the tests."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

CORPUS: tuple[Mapping[str, Any], ...] = (
    {
        "space": "kitchen", "id": "k1", "session": "monday", "ts": "2026-03-02T09:00:00",
        "speaker": "Nora", "text": "I baked a rhubarb cake for my sister.",
    },
    {
        "space": "kitchen", "id": "k2", "session": "monday", "ts": "2026-03-02T09:01:00",
        "speaker": "Emil", "text": "Which one? The sister from Lisbon?",
    },
    {
        "space": "kitchen", "id": "k3", "session": "monday", "ts": "2026-03-02T09:02:00",
        "speaker": "Nora", "text": "Yes, Inês. She moved to a flat near the harbour.",
    },
    {
        "space": "kitchen", "id": "k4", "session": "friday", "ts": "2026-03-06T18:30:00",
        "speaker": "Emil", "text": "The oven repair costs 140 euros.",
    },
    {
        "space": "kitchen", "id": "k5", "session": "friday", "ts": "2026-03-06T18:31:00",
        "speaker": "Nora", "text": "Then I will bake bread at your place on Sunday.",
    },
    {
        "space": "办公室", "id": "b1", "speaker": "李雷", "ts": "2026-04-01",
        "text": "打印机又坏了，请报修。",
    },
    {
        "space": "办公室", "id": "b2", "speaker": "韩梅", "ts": "2026-04-02",
        "text": "维修师傅说周五上午十点过来。",
    },
    {
        "space": "办公室", "id": "b3", "speaker": "李雷", "ts": "2026-04-03",
        "text": "会议室的投影仪换了新的灯泡。",
    },
    {
        "space": "facts", "id": "f1", "ts": "1",
        "text": "The captain of the rowing club is Ada Brook.",
    },
    {
        "space": "facts", "id": "f2", "ts": "2",
        "text": "The treasurer of the rowing club is Tom Reed.",
    },
    {
        "space": "facts", "id": "f3", "ts": "3",
        "text": "The captain of the rowing club is Lena Moss.",
    },
)  # fmt: skip

QUERIES: tuple[Mapping[str, Any], ...] = (
    {
        "space": "kitchen", "qid": "q1", "question": "How much is the oven repair?",
        "answer": "140 euros", "category": "single-hop", "gold": ["k4"],
    },
    {
        "space": "kitchen", "qid": "q2", "question": "For whom did Nora bake a rhubarb cake?",
        "answer": "her sister Inês", "category": "multi-hop", "gold": ["k1", "k3"],
    },
    {"space": "kitchen", "qid": "q3", "question": "What did nobody say?", "gold": []},
    {
        "space": "办公室", "qid": "q4", "question": "打印机的维修师傅什么时候过来？",
        "answer": "周五上午十点", "category": "single-hop", "gold": ["b2"], "ask_time": "2026-04",
    },
    {
        "space": "facts", "qid": "q5", "question": "Who is the captain of the rowing club?",
        "answers": ["Lena Moss", "Moss"], "category": "update", "gold": ["f3"], "stale": ["f1"],
    },
)  # fmt: skip


def write_set(
    folder: Path,
    *,
    corpus: Iterable[Mapping[str, Any] | str] = CORPUS,
    queries: Iterable[Mapping[str, Any] | str] = QUERIES,
    zipped: bool = False,
) -> Path:
    """Write a set; a string is a line as it stands."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in (("corpus", corpus), ("queries", queries)):
        text = "".join(
            f"{line if isinstance(line, str) else json.dumps(line, ensure_ascii=False)}\n"
            for line in lines
        )
        data = text.encode()
        path = folder / f"{name}.jsonl{'.gz' if zipped else ''}"
        path.write_bytes(gzip.compress(data) if zipped else data)
    return folder
