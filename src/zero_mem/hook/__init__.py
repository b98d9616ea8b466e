"""Memory inside Claude Code, by its hooks: no proxy, and the transcript is the client's own.

PostToolUse puts a receipt in the place of a long result, PreToolUse puts values in the place
of handles, SessionStart says how to read what is stored and shows pinned memory.
"""
