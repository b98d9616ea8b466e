CREATE TABLE store (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE namespace (
    number INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    next_id INTEGER NOT NULL DEFAULT 1,
    highest_id INTEGER NOT NULL DEFAULT 0,
    positions INTEGER NOT NULL DEFAULT 0,
    sequence INTEGER NOT NULL DEFAULT 0,
    last_at INTEGER NOT NULL DEFAULT 0,
    documents INTEGER NOT NULL DEFAULT 0,
    length INTEGER NOT NULL DEFAULT 0,
    settings TEXT NOT NULL DEFAULT ''
);

-- Bodies live once; journal entries point here, so that a purge reaches them.
CREATE TABLE body (
    number INTEGER PRIMARY KEY,
    type TEXT NOT NULL,
    bytes BLOB NOT NULL
);

-- What is read or unique of a record now; the rest is in its last journal entry (`sequence`).
-- A position is the namespace's number << 32 plus a count, so a namespace is a range of rows.
-- `alias` is the record's id, or NULL where that is the count itself (most generated ids).
-- Terms are prefixed with their namespace's number, so that postings are its own.
CREATE TABLE record (
    position INTEGER PRIMARY KEY,
    namespace INTEGER NOT NULL,
    length INTEGER NOT NULL,
    state TEXT NOT NULL,
    alias TEXT,
    form TEXT NOT NULL,
    kind TEXT NOT NULL,
    dedupe TEXT,
    task TEXT,
    session TEXT,
    expires_at INTEGER,
    updated_at INTEGER NOT NULL,
    accessed_at INTEGER NOT NULL,
    access_count INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    terms TEXT
);
CREATE UNIQUE INDEX record_alias ON record (namespace, alias) WHERE alias IS NOT NULL;
CREATE INDEX record_working ON record (namespace, kind)
    WHERE form = 'working' AND state = 'active';
CREATE UNIQUE INDEX record_key ON record (namespace, kind, dedupe)
    WHERE dedupe IS NOT NULL AND state = 'active';
CREATE INDEX record_task ON record (namespace, task) WHERE task IS NOT NULL;
CREATE INDEX record_expiry ON record (namespace, expires_at)
    WHERE expires_at IS NOT NULL AND state = 'active';

-- A place is the namespace's number << 32 plus the sequence. `previous` is the sequence of the
-- same record's entry before: a record's history is a chain. `fields` is the record after the
-- change, all but its body; `origin` is empty for this store's own changes.
CREATE TABLE journal (
    place INTEGER PRIMARY KEY,
    previous INTEGER NOT NULL,
    "group" INTEGER NOT NULL,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    operation TEXT NOT NULL,
    reason TEXT NOT NULL,
    origin TEXT NOT NULL,
    body INTEGER,
    fields TEXT NOT NULL
);

CREATE VIRTUAL TABLE lexicon USING fts5 (
    terms, content = 'record', content_rowid = 'position', tokenize = 'ascii', columnsize = 0
);
-- Merge half as often as by default (4): a save writes less, a search looks into more segments.
INSERT INTO lexicon (lexicon, rank) VALUES ('automerge', 8);
CREATE VIRTUAL TABLE lexicon_term USING fts5vocab (lexicon, row);
CREATE VIRTUAL TABLE lexicon_instance USING fts5vocab (lexicon, instance);

-- Vectors of active records, little-endian half floats; one whose text changes is dropped with
-- the change. `context` is the position of the record whose text went in too, or 0. Numbers are
-- never used again, so that a reader can ask for what came after the last one it has seen.
CREATE TABLE vector_model (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    dimension INTEGER NOT NULL,
    UNIQUE (name, dimension)
);
CREATE TABLE vector (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    position INTEGER NOT NULL,
    model INTEGER NOT NULL,
    context INTEGER NOT NULL,
    data BLOB NOT NULL,
    UNIQUE (position, model)
);

CREATE TABLE decision (
    number INTEGER PRIMARY KEY,
    namespace INTEGER NOT NULL,
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT,
    uid TEXT,
    UNIQUE (namespace, scope, key)
);
CREATE INDEX decision_uid ON decision (uid) WHERE uid IS NOT NULL;

CREATE TABLE hold (
    namespace INTEGER NOT NULL,
    owner TEXT NOT NULL,
    uid TEXT NOT NULL,
    PRIMARY KEY (namespace, owner, uid)
) WITHOUT ROWID;
