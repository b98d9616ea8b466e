"""Traces from elsewhere: what was said and what tools gave, read into a namespace."""

from zero_mem.traces.lines import import_lines
from zero_mem.traces.mapping import LineMapping, parse_mapping
from zero_mem.traces.report import TraceReport
from zero_mem.traces.transcripts import import_transcripts

__all__ = ["LineMapping", "TraceReport", "import_lines", "import_transcripts", "parse_mapping"]
