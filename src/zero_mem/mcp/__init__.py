"""The store over the Model Context Protocol, on stdio and on streamable HTTP.

Five tools, each memory as a resource, and a prompt of what is pinned. `definitions` says what a
client is told, `calls` does it on a namespace, `server` ties both to the SDK, `stdio` and
`endpoint` carry it. `clients` and `installing` write the settings of programs that use it. Only
what goes through `sdk` needs the extra `mcp`.
"""
