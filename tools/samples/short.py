"""A short chat with tiny results, for which no memory is worth its tokens."""

from __future__ import annotations

from samples.run import Run, tool, transcript

SYSTEM = "You are the opening-hours assistant of Harbour Living. Answer in one or two sentences."

TOOLS = (
    tool("get_hours", "Read a shop's hours for one day.", shop="Shop name", day="YYYY-MM-DD"),
    tool("get_parking", "Read where one parks.", shop="Shop name"),
)


def build() -> str:
    """Write the whole chat as one transcript."""
    run = Run(seed=7, system=SYSTEM)
    run.user("Is the Xujiahui shop open on Sunday?")
    hours = {"day": "2026-11-15", "open": "10:00", "close": "21:30"}
    run.calls("get_hours", {"shop": "上海徐家汇店", "day": "2026-11-15"}, hours)
    run.says("Yes, on Sunday, 15 November it is open from 10:00 to 21:30.")
    run.user("停车方便吗？")
    parking = {"place": "地下 B2", "free_minutes": 120}
    run.calls("get_parking", {"shop": "上海徐家汇店"}, parking)
    run.says("方便，停在地下 B2，消费后可免费停 120 分钟。")
    run.user("Thanks!")
    run.says("You're welcome, see you on Sunday.")
    return transcript(run, TOOLS)
