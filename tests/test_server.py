"""The HTTP API over a real server on loopback: what the protocol adds to the operations."""

from __future__ import annotations

import io
import json
import socket
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from proxies import until
from serving import Loopback, loopback

from zero_mem import Conflict, InvalidInput, LimitReached, Memory, NotAllowed, NotFound
from zero_mem.access import Grant
from zero_mem.client import RemoteMemory, connect, connect_async
from zero_mem.errors import StoreUnavailable
from zero_mem.exchange import import_records
from zero_mem.metrics.registry import Serving
from zero_mem.server.settings import Settings
from zero_mem.testing import FakeClock

JSON = {"Content-Type": "application/json"}
HERE = "namespace=acme/alice"


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with loopback() as running:
        yield running


@pytest.fixture
def local(tmp_path: Path, clock: FakeClock) -> Memory:
    return Memory.open(f"sqlite:///{tmp_path}/store.db", clock=clock, durability="normal")


@pytest.fixture
def http(server: Loopback, local: Memory) -> Iterator[httpx.Client]:
    settings = Settings(max_body=20_000, body_timeout=0.5, poll=0.05, heartbeat=0.05)
    with server.serving(local, settings) as url, httpx.Client(base_url=url) as client:
        yield client


@pytest.fixture
def remote(http: httpx.Client) -> Iterator[RemoteMemory]:
    with connect(str(http.base_url)) as memory:
        yield memory


def problem(answer: httpx.Response) -> tuple[int, str]:
    """Give the status and the name of a problem, having checked its form."""
    assert answer.headers["content-type"] == "application/problem+json"
    found = answer.json()
    assert found.keys() == {"type", "title", "status", "detail"}
    assert found["status"] == answer.status_code
    return answer.status_code, found["type"].removeprefix("urn:zero-mem:")


# Versions, idempotency, ids


@pytest.mark.req("server:http", "op:version")
def test_an_etag_is_the_version_that_if_match_asks_for(http: httpx.Client) -> None:
    saved = http.post(f"/v1/records?{HERE}", json={"content": "one", "memory_id": "x"})
    assert saved.headers["etag"] == '"1"'
    url = f"/v1/records/x?{HERE}"
    changed = http.patch(url, json={"content": "two"}, headers={"If-Match": '"1"'})
    assert changed.headers["etag"] == http.get(url).headers["etag"] == '"2"'
    late = http.patch(url, json={"content": "late"}, headers={"If-Match": '"1"'})
    assert problem(late) == (412, "version-differs")
    assert problem(http.patch(url, json={"content": "late", "if_version": 1})) == (409, "conflict")
    assert problem(http.delete(url, headers={"If-Match": "one"})) == (400, "invalid-input")
    assert http.get(url).json()["content"] == "two"


@pytest.mark.req("server:http", "op:idempotency")
def test_a_retry_with_its_key_is_applied_once(http: httpx.Client) -> None:
    headers = {"Idempotency-Key": "once"}
    first, again = (
        http.post(f"/v1/records?{HERE}", json={"content": "tea"}, headers=headers) for _ in "ab"
    )
    assert (first.json()["memory_id"], first.json()["flags"]) == ("1", [])
    assert (again.json()["memory_id"], again.json()["flags"]) == ("1", ["replayed"])
    refused = http.patch(f"/v1/records/1?{HERE}", json={"content": "b"}, headers=headers)
    assert problem(refused) == (400, "invalid-input")


@pytest.mark.req("server:http", "handle:grammar")
@pytest.mark.parametrize("name", ["a/b", "a%b", "a&b", "a=b", "a?b", "..", "", "a b", "退"])
def test_an_id_that_is_none_is_refused_and_reaches_nothing_else(
    http: httpx.Client, remote: RemoteMemory, name: str
) -> None:
    from urllib.parse import quote

    http.post(f"/v1/records?{HERE}", json={"content": "tea", "memory_id": "a"})
    escaped = quote(name, safe="").replace(".", "%2E")
    assert problem(http.get(f"/v1/records/{escaped}?{HERE}")) == (400, "invalid-input")
    with pytest.raises(InvalidInput, match="memory_id"):
        remote.namespace("acme", "alice").get(name)
    refused = http.post(f"/v1/records?{HERE}", json={"content": "b", "memory_id": name})
    assert problem(refused) == (400, "invalid-input")


@pytest.mark.req("server:http", "handle:grammar")
def test_a_whole_number_is_an_id(http: httpx.Client) -> None:
    http.post(f"/v1/records?{HERE}", json={"content": "tea", "memory_id": 57})
    assert http.get(f"/v1/records/57?{HERE}").json()["memory_id"] == "57"
    got = http.post(f"/v1/batch/get?{HERE}", json={"memory_ids": [57, "58"]}).json()["result"]
    assert [record and record["content"] for record in got] == ["tea", None]


@pytest.mark.req("server:http", "server:openapi")
def test_a_whole_number_may_be_written_with_a_point(http: httpx.Client) -> None:
    settings = {"max_memory_items": 500.0, "max_recall_items": 7.0, "retention_days": 1.5}
    set_to = http.post(f"/v1/limits?{HERE}", json={"settings": settings}).json()
    assert {name: set_to[name] for name in settings} == settings
    assert type(set_to["max_memory_items"]) is int
    http.post(f"/v1/records?{HERE}", json={"content": "tea", "memory_id": 57.0})
    assert http.get(f"/v1/records/57?{HERE}").json()["memory_id"] == "57"


@pytest.mark.req("server:http", "handle:scope")
def test_a_namespace_with_a_slash_in_a_segment_is_a_list(
    http: httpx.Client, remote: RemoteMemory
) -> None:
    remote.namespace("acme", "a/b").save("of a/b")
    remote.namespace("acme", "a", "b").save("of a, b")
    listed = http.get("/v1/records", params={"namespace": '["acme","a/b"]'}).json()
    assert [record["content"] for record in listed["items"]] == ["of a/b"]
    assert remote.subtree("acme").namespaces() == [("acme", "a/b"), ("acme", "a", "b")]
    assert problem(http.get("/v1/records?namespace=[1]")) == (400, "invalid-input")
    assert problem(http.get("/v1/records")) == (400, "invalid-input")


# Bad input


@pytest.mark.req("server:bad-input", "pkg:errors")
@pytest.mark.parametrize(
    "body",
    [
        b'{"content": "a", "content": "b"}',
        b'{"content": "a", "metadata": {"k": 1, "k": 2}}',
        b'{"content": "\xff"}',
        b'{"content": "a"',
        b'{"content": NaN}',
        b'{"content": 1e999999, "content_type": "json"}',
        b'{"content": ' + b"[" * 9000 + b"]" * 9000 + b"}",
        b'{"content": ' + b"9" * 5000 + b"}",
        b'["content"]',
        b"null",
        b"",
        b"{}",
        b'{"content": "a", "colour": "red"}',
        b'{"content": "a", "tags": "red"}',
        b'{"content": "a", "if_version": "1"}',
        b'{"content": "a", "if_version": true}',
        b'{"content": "a", "created_at": "yesterday"}',
        b'{"content": "a", "form": "eternal"}',
        b'{"content": "no Base64", "content_type": "blob"}',
        b'{"content_type": "text"}',
        b'{"content": "a", "media_type": "\\u009b"}',
        b'{"content": "a", "content_type": 0}',
        b'{"content": " "}',
    ],
    ids=lambda body: body[:40].decode("latin-1"),
)
def test_a_body_that_is_wrong_stores_nothing(
    http: httpx.Client, local: Memory, body: bytes
) -> None:
    answer = http.post(f"/v1/records?{HERE}", content=body, headers=JSON)
    assert problem(answer) == (400, "invalid-input")
    assert len(answer.json()["detail"]) > 10
    assert local.stats().namespaces == 0


@pytest.mark.req("server:bad-input")
def test_a_body_over_the_limit_is_refused_unread(http: httpx.Client, local: Memory) -> None:
    large = json.dumps({"content": "x" * 30_000}).encode()
    announced = http.post(f"/v1/records?{HERE}", content=large, headers=JSON)
    assert problem(announced) == (413, "too-large")
    parts = (large[at : at + 1000] for at in range(0, len(large), 1000))
    assert problem(http.post(f"/v1/records?{HERE}", content=parts, headers=JSON))[0] == 413
    assert local.stats().namespaces == 0


@pytest.mark.req("server:bad-input")
def test_other_types_paths_methods_and_parameters(http: httpx.Client) -> None:
    form = http.post(f"/v1/records?{HERE}", data={"content": "a"})
    assert problem(form) == (415, "wrong-type")
    assert problem(http.get("/v1/nothing")) == (404, "no-such-path")
    wrong = http.put(f"/v1/records?{HERE}", json={})
    assert (problem(wrong), wrong.headers["allow"]) == ((405, "wrong-method"), "GET, POST")
    for query in ("colour=red", "limit=ten", "limit=0", "where={", "limit=1&limit=2", "where=[1]"):
        assert problem(http.get(f"/v1/records?{HERE}&{query}")) == (400, "invalid-input")
    beside = http.post(f"/v1/records?{HERE}&kind=a", json={"content": "a"})
    assert problem(beside) == (400, "invalid-input")


def _raw(http: httpx.Client, *parts: bytes) -> socket.socket:
    """Open a connection and send the beginning of a request on it."""
    connection = socket.create_connection((http.base_url.host, http.base_url.port or 80), 10)
    for part in parts:
        connection.sendall(part)
    return connection


_HALF = (
    b"POST /v1/records?namespace=acme/alice HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    b'Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"content": "half'
)


@pytest.mark.req("server:bad-input")
def test_a_slow_client_is_told_so_and_nothing_is_done(http: httpx.Client, local: Memory) -> None:
    with _raw(http, _HALF) as connection:
        answer = b"".join(iter(lambda: connection.recv(4096), b""))
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"urn:zero-mem:too-slow" in answer
    assert local.stats().namespaces == 0


@pytest.mark.req("server:bad-input")
@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"", b"408"),
        (b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n", b"408"),
        (b"GET /health HTTP/1.1\r\n" + b"X-Long: y\r\n" * 7000, b"431"),
        (b"GET /health HTTP/1.1\r\nHost: h\r\n\r\nGET /hea", b"408"),
    ],
    ids=["nothing", "half a head", "an endless head", "half a second request"],
)
def test_a_connection_that_never_gets_to_a_request_is_ended(
    http: httpx.Client, sent: bytes, status: bytes
) -> None:
    with _raw(http, sent) as connection:
        answer = b"".join(iter(lambda: connection.recv(4096), b""))
    assert b"HTTP/1.1 " + status in answer
    assert http.get("/health").status_code == 200


@pytest.mark.req("server:bad-input", "server:feed")
def test_a_client_that_goes_away_in_mid_answer_gives_its_place_back(
    server: Loopback, local: Memory
) -> None:
    space = local.namespace("acme", "alice")
    space.save_many([{"content": "x" * 500} for _ in range(4000)])
    with server.serving(local, Settings(max_streams=1, poll=0.02, heartbeat=0.02)) as url:
        for path in ("export", "changes/stream"):
            with httpx.stream("GET", f"{url}/v1/{path}?{HERE}") as begun:
                assert begun.status_code == 200
                next(begun.iter_bytes())
        until(lambda: local.snapshot().serving == Serving(requests=0, feeds=0))
        with httpx.stream("GET", f"{url}/v1/changes/stream?{HERE}&after=3999") as again:
            assert again.status_code == 200
        assert httpx.get(f"{url}/v1/stats").json()["records"] == 4000


@pytest.mark.req("server:bad-input")
def test_a_client_that_goes_away_leaves_nothing_half_done(
    http: httpx.Client, local: Memory
) -> None:
    _raw(http, _HALF).close()
    whole = _HALF.replace(b"100", b"19").replace(b'"half', b'"all"}')
    _raw(http, whole).close()
    assert http.get("/health").json() == {"alive": True}
    assert local.stats().records in (0, 1)
    assert [r.text for r in local.namespace("acme", "alice").each()] in ([], ["all"])


# Keys


@pytest.fixture
def keyed(server: Loopback, local: Memory) -> Iterator[tuple[str, dict[str, str]]]:
    """Serve with keys for alice and bob."""
    credentials = {
        name: local.keyring.create(name, [Grant.parse(f"write:acme/{name}/**")]).credential
        for name in ("alice", "bob")
    }
    local.namespace("acme", "bob").save("secret of bob", memory_id="b", key="k")
    with server.serving(local, Settings(recheck=0, rate=0)) as url:
        yield url, credentials


@pytest.mark.req("prod:auth", "prod:namespaces", "server:auth")
def test_what_is_another_keys_is_denied_alike(keyed: tuple[str, dict[str, str]]) -> None:
    url, credentials = keyed
    headers = {"Authorization": f"Bearer {credentials['alice']}"}
    with httpx.Client(base_url=url, headers=headers) as http:
        details = set()
        for place in ("acme/bob", "acme/nobody"):
            for method, path, body in [
                ("GET", "/v1/records/b", None),
                ("GET", "/v1/records/none", None),
                ("GET", "/v1/records", None),
                ("GET", "/v1/records/b/history", None),
                ("POST", "/v1/search", {"query": "secret"}),
                ("POST", "/v1/prompt", {"memory_ids": ["b"]}),
                ("GET", "/v1/changes", None),
                ("GET", "/v1/changes/stream", None),
                ("GET", "/v1/export", None),
                ("GET", "/v1/failures", None),
            ]:
                answer = http.request(method, f"{path}?namespace={place}", json=body)
                assert problem(answer) == (403, "not-allowed"), path
                details.add(answer.json()["detail"].replace(place, "PLACE"))
        assert details == {"the credential gives no right to read namespace PLACE"}
        assert http.get("/v1/subtree/namespaces").json() == {"result": []}
        purge = http.post("/v1/records/b/purge?namespace=acme/bob", json={})
        assert problem(purge)[0] == 403
        assert http.get("/metrics").status_code == 200
    with connect(url, credential=credentials["alice"]) as memory, pytest.raises(NotAllowed):
        memory.namespace("acme", "bob").get("b")


@pytest.mark.req("prod:auth", "server:auth")
def test_without_a_valid_key_nothing_is_said(
    keyed: tuple[str, dict[str, str]], local: Memory
) -> None:
    url, credentials = keyed
    details = set()
    for header in (f"Bearer zm_{'a' * 8}_{'b' * 32}", "Bearer x", f"Bearer {credentials['bob']}x"):
        answer = httpx.get(f"{url}/v1/stats", headers={"Authorization": header})
        assert problem(answer) == (401, "no-credential")
        assert answer.headers["www-authenticate"] == "Bearer"
        details.add(answer.json()["detail"])
    assert len(details) == 1
    # Who gave none is told where one goes, in the program that they use.
    with (
        connect(url) as memory,
        pytest.raises(NotAllowed, match=r"credential=.*ZERO_MEM_CREDENTIAL"),
    ):
        memory.stats()
    assert problem(httpx.get(f"{url}/v1/stats"))[0] == 401
    assert problem(httpx.get(f"{url}/metrics"))[0] == 401
    assert httpx.get(f"{url}/health").status_code == httpx.get(f"{url}/ready").status_code == 200


@pytest.mark.req("prod:auth", "server:auth")
def test_a_revoked_key_stops_working(keyed: tuple[str, dict[str, str]], local: Memory) -> None:
    url, credentials = keyed
    with connect(url, credential=credentials["alice"]) as memory:
        space = memory.namespace("acme", "alice", actor="her agent")
        space.save("tea")
        assert space.history("1")[0].actor == "key:alice (her agent)"
        following = space.follow()
        assert next(following).memory_id == "1"
        (key,) = [key for key in local.keyring.every() if key.name == "alice"]
        local.keyring.revoke(key.key_id)
        with pytest.raises(NotAllowed):
            space.get("1")
        assert list(following) == []


@pytest.mark.req("prod:auth", "server:auth", "server:client")
def test_keys_are_made_listed_and_ended_over_http(
    server: Loopback, local: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    admin = local.keyring.create("admin", [Grant.parse("admin:acme/**")])
    above = local.keyring.create("above", [Grant.parse("admin:**")])
    caplog.set_level("DEBUG")
    with (
        server.serving(local, Settings(recheck=0)) as url,
        connect(url, credential=admin.credential) as memory,
    ):
        new = memory.keyring.create("bob", [Grant.parse("write:acme/bob")], expires_in=3600)
        assert new.key in local.keyring.every()
        assert new.key.made_by == admin.key.key_id
        with connect(url, credential=new.credential) as bobs:
            space = bobs.namespace("acme", "bob", actor="agent")
            space.save("tea")
            assert space.history("1")[0].actor == "key:bob (agent)"
            with pytest.raises(NotAllowed, match="administer"):
                bobs.keyring.every()
            assert {key.name for key in memory.keyring.every()} == {"admin", "bob"}
            ended = memory.keyring.revoke(new.key.key_id)
            assert ended.revoked_at is not None
            with pytest.raises(NotAllowed):
                space.get("1")
        with pytest.raises(NotAllowed, match="within"):
            memory.keyring.create("more", [Grant.parse("read:**")])
        with pytest.raises(NotFound):
            memory.keyring.revoke(above.key.key_id)
    assert new.credential.rpartition("_")[2] not in caplog.text


@pytest.mark.req("server:http", "server:bad-input")
def test_a_key_over_http_is_plain_json(http: httpx.Client, local: Memory) -> None:
    body: dict[str, Any] = {"name": "app", "grants": ["read:acme/**", 'write:["a/b"]']}
    for wrong in (
        {"name": "app"},
        {**body, "grants": []},
        {**body, "grants": ["own:acme"]},
        {**body, "grants": "read:acme"},
        {**body, "grants": [1]},
        {**body, "expires_in": 0},
        {**body, "expires_in": "1d"},
        {**body, "secret": "x"},
    ):
        assert problem(http.post("/v1/keys", json=wrong)) == (400, "invalid-input"), wrong
    assert local.keyring.every() == []
    made = http.post("/v1/keys", json=body)
    assert made.headers["cache-control"] == "no-store"
    found = made.json()
    assert found["key"]["grants"] == body["grants"]
    # From now on the server is not open any more.
    http.headers["Authorization"] = f"Bearer {found['credential']}"
    assert problem(http.get("/v1/keys")) == (403, "not-allowed")


@pytest.mark.req("server:auth")
def test_a_key_is_looked_up_again_after_its_time(local: Memory) -> None:
    from zero_mem.api.problems import Refusal
    from zero_mem.server.access import Doors

    clock = [100.0]
    new = local.keyring.create("app", [Grant.parse("read:**")])
    doors = Doors(local, is_open=True, recheck=1.0, rate=2.0, burst=3, clock=lambda: clock[0])
    view = doors.opened(new.credential)
    local.keyring.revoke(new.key.key_id)
    clock[0] += 0.99
    assert doors.known(new.credential) is view
    for _ in range(3):
        doors.admit(new.credential)
    with pytest.raises(Refusal, match="2 requests a second"):
        doors.admit(new.credential)
    clock[0] += 0.5
    doors.admit(new.credential)
    assert doors.known(new.credential) is None
    with pytest.raises(Refusal, match="revoked"):
        doors.opened(new.credential)
    with pytest.raises(Refusal, match="Bearer"):
        doors.opened(None)
    local.close()


@pytest.mark.req("server:auth")
def test_too_many_requests_are_refused_with_a_time_to_wait(server: Loopback, local: Memory) -> None:
    credential = local.keyring.create("app", [Grant.parse("read:**")]).credential
    headers = {"Authorization": f"Bearer {credential}"}
    with server.serving(local, Settings(rate=0.001, burst=2)) as url:
        answers = [httpx.get(f"{url}/v1/stats", headers=headers) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert problem(answers[2]) == (429, "too-many")
        assert int(answers[2].headers["retry-after"]) > 0
        with connect(url, credential=credential) as memory, pytest.raises(LimitReached):
            memory.stats()


@pytest.mark.req("server:auth")
def test_a_page_of_the_web_gets_nothing_from_an_open_server(http: httpx.Client) -> None:
    named = http.get(f"/v1/records?{HERE}", headers={"Host": "evil.example:80"})
    assert problem(named) == (421, "wrong-host")
    assert http.get("/ready", headers={"Host": "probe.example"}).status_code == 200
    answer = http.get("/v1/now", headers={"Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in answer.headers
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    simple = http.post(
        f"/v1/records?{HERE}", content=b'{"content": "a"}', headers={"Content-Type": "text/plain"}
    )
    assert problem(simple) == (415, "wrong-type")


@pytest.mark.req("server:auth")
def test_the_origins_that_are_named_may_call(server: Loopback, local: Memory) -> None:
    with server.serving(local, Settings(cors="https://app.example")) as url:
        asked = {"Origin": "https://app.example", "Access-Control-Request-Method": "PATCH"}
        allowed = httpx.options(f"{url}/v1/records/1", headers=asked)
        assert allowed.headers["access-control-allow-origin"] == "https://app.example"
        other = httpx.get(f"{url}/v1/now", headers={"Origin": "https://evil.example"})
        assert "access-control-allow-origin" not in other.headers


# The feed


@pytest.mark.req("server:feed", "history:journal")
def test_the_feed_goes_on_where_it_was_left(http: httpx.Client, local: Memory) -> None:
    space = local.namespace("acme", "alice")
    space.save("one", memory_id="x")
    with http.stream("GET", f"/v1/changes/stream?{HERE}") as answer:
        lines = answer.iter_lines()
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert next(line for line in lines if line.startswith("id: ")) == "id: 1"
        # What another process writes is seen too, and silence is filled with comments.
        space.update("x", content="two")
        assert next(line for line in lines if line.startswith("id: ")) == "id: 2"
        assert next(lines) == "event: change"
        assert json.loads(next(lines).removeprefix("data: "))["record"]["content"] == "two"
        assert next(line for line in lines if line.startswith(":")) == ": nothing new"
    space.archive("x")
    headers = {"Last-Event-ID": "2"}
    with http.stream("GET", f"/v1/changes/stream?{HERE}&after=0", headers=headers) as answer:
        assert next(line for line in answer.iter_lines() if line.startswith("id: ")) == "id: 3"


@pytest.mark.req("server:feed")
def test_a_feed_from_no_position_is_refused(http: httpx.Client) -> None:
    for query in ("after=-1", "after=x", "colour=red", ""):
        place = HERE if query else ""
        answer = http.get(f"/v1/changes/stream?{place}&{query}")
        assert problem(answer) == (400, "invalid-input")


# Export, import, metrics, sweeper


@pytest.mark.req("server:http")
def test_what_is_exported_is_imported_again(
    http: httpx.Client, remote: RemoteMemory, local: Memory
) -> None:
    space = remote.namespace("acme", "alice")
    space.save_many([{"content": f"text {n}", "tags": ["t"]} for n in range(250)])
    space.archive("7")
    out = io.StringIO()
    assert space.export(out) == 250
    lines = out.getvalue()
    types = {"Content-Type": "application/x-ndjson"}
    copied = http.post("/v1/import?namespace=acme/copy", content=lines.encode(), headers=types)
    assert copied.json() == {"imported": 250, "unchanged": 0, "skipped": [], "renumbered": []}
    again = http.post("/v1/import?namespace=acme/copy", content=lines.encode(), headers=types)
    assert again.json()["unchanged"] == 250
    copy = remote.namespace("acme", "copy")
    assert (copy.count({"tag": "t"}), copy.get("7").state) == (249, "archived")
    assert space.export(io.StringIO(), where={"memory_id": "3"}) == 1
    with Memory.open("memory://") as fresh:
        report = import_records(lambda path: fresh.namespace(*path), io.BytesIO(lines.encode()))
        assert report.imported == 250


@pytest.mark.req("server:bad-input")
def test_an_import_with_a_broken_line_names_it(http: httpx.Client) -> None:
    types = {"Content-Type": "application/x-ndjson"}
    broken = http.post("/v1/import", content=b'{"content": "a"}\n{"content":', headers=types)
    assert problem(broken) == (400, "invalid-input")
    assert "input:2" in broken.json()["detail"]
    newer = http.post("/v1/import", content=b'{"content": "a", "format": 99}', headers=types)
    assert problem(newer) == (422, "newer-format")
    wrong = http.post("/v1/import?on_conflict=burn", content=b"", headers=types)
    assert problem(wrong) == (400, "invalid-input")
    refused = http.get(f"/v1/export?{HERE}&where=%7B%22colour%22:1%7D")
    assert problem(refused) == (400, "invalid-input")


@pytest.mark.req("server:http", "prod:metrics")
def test_metrics_and_health_tell_no_body(http: httpx.Client, remote: RemoteMemory) -> None:
    remote.namespace("acme", "alice").save("Alice likes tea", key="secret_key")
    metrics = http.get("/metrics")
    assert 'zero_mem_operations_total{operation="save"} 1.0' in metrics.text
    assert "tea" not in metrics.text
    assert http.get("/ready").json() == {"ready": True}
    assert remote.health().ready
    http.get("/v1/records/none", params={"namespace": "acme/alice"})


@pytest.mark.req("server:serve", "expire:sweeper")
def test_the_sweeper_ends_what_is_due_and_says_so(
    local: Memory, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    import asyncio

    from zero_mem.server.sweeper import Sweeper

    space = local.namespace("acme", "alice")
    space.save("until tonight", memory_id="x", expires_in=60)
    clock.advance(timedelta(minutes=1))

    async def sweep() -> Any:
        return await asyncio.to_thread(local.expire)

    sweeper = Sweeper(sweep, every=60)
    with caplog.at_level("INFO"):
        asyncio.run(sweeper.once())
    assert caplog.messages == ["acme/alice [memo:x] expire: expired"]
    assert [report.count for report in sweeper.reports] == [1]
    local.close()


@pytest.mark.req("server:http")
def test_too_many_waiting_requests_are_refused(server: Loopback, local: Memory) -> None:
    with server.serving(local, Settings(backlog=0)) as url:
        answer = httpx.get(f"{url}/v1/now")
        assert problem(answer) == (503, "busy")
        assert answer.headers["retry-after"] == "1"
        with connect(url) as memory, pytest.raises(StoreUnavailable, match="wait for the store"):
            memory.now()


@pytest.mark.req("server:http", "op:list")
def test_an_answer_is_bounded_and_a_cursor_goes_on(server: Loopback, local: Memory) -> None:
    local.namespace("acme", "alice").save_many([{"content": f"text {n}"} for n in range(5)])
    with server.serving(local, Settings(max_results=2)) as url, connect(url) as memory:
        space = memory.namespace("acme", "alice")
        assert len(space.list(limit=100)) == 2
        assert len(list(space.each())) == 5
        assert len(space.search("text", limit=100)) == 2


@pytest.mark.req("server:client", "op:queued")
def test_a_queued_save_is_seen_by_the_next_read(remote: RemoteMemory) -> None:
    space = remote.namespace("acme", "alice")
    receipt = space.save("tea", mode="queued")
    assert (receipt.accepted, receipt.version) == (True, 0)
    assert space.get(receipt.memory_id).text == "tea"
    space.save("late", memory_id=receipt.memory_id, if_version=7, mode="queued")
    assert [type(failure.error) for failure in space.failures()] == [Conflict]


# The client


@pytest.mark.req("server:client")
def test_a_server_that_is_not_there_is_a_typed_error(remote: RemoteMemory) -> None:
    with (
        connect("http://127.0.0.1:9") as nobody,
        pytest.raises(StoreUnavailable, match="no server"),
    ):
        nobody.now()
    for url in ("sqlite:///store.db", "127.0.0.1:80"):
        with pytest.raises(InvalidInput):
            connect(url)
    remote.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        remote.now()


async def _over_async(url: str) -> None:
    async with connect_async(url) as memory:
        space = memory.namespace("acme", "alice")
        receipt = await space.save("tea", key="drink")
        assert (await space.get(receipt.memory_id)).text == "tea"
        assert [record.text async for record in space.each()] == ["tea"]
        assert len(await (await space.as_of(await memory.now())).list()) == 1
        with pytest.raises(NotFound):
            await space.get("none")


@pytest.mark.req("server:client", "pkg:async")
def test_the_asynchronous_client_has_the_same_names(http: httpx.Client) -> None:
    import asyncio

    asyncio.run(_over_async(str(http.base_url)))
