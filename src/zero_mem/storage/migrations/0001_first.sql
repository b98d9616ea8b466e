CREATE TABLE store (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE namespace (
    number INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    next_id INTEGER NOT NULL DEFAULT 1,
    sequence INTEGER NOT NULL DEFAULT 0,
    last_at INTEGER NOT NULL DEFAULT 0,
    documents INTEGER NOT NULL DEFAULT 0,
    length INTEGER NOT NULL DEFAULT 0,
    settings TEXT NOT NULL DEFAULT ''
);

-- Bodies live once; records and journal entries point here, so that a purge reaches them.
CREATE TABLE body (
    number INTEGER PRIMARY KEY,
    type TEXT NOT NULL,
    bytes BLOB NOT NULL
);

CREATE TABLE record (
    position INTEGER PRIMARY KEY,
    namespace INTEGER NOT NULL,
    memory_id TEXT NOT NULL,
    form TEXT NOT NULL,
    kind TEXT NOT NULL,
    dedupe TEXT,
    task TEXT,
    session TEXT,
    state TEXT NOT NULL,
    expires_at INTEGER,
    accessed_at INTEGER NOT NULL,
    access_count INTEGER NOT NULL DEFAULT 0,
    body INTEGER,
    fields TEXT NOT NULL,
    UNIQUE (namespace, memory_id)
);
CREATE INDEX record_namespace ON record (namespace, state, form);
CREATE UNIQUE INDEX record_key ON record (namespace, kind, dedupe)
    WHERE dedupe IS NOT NULL AND state = 'active';
CREATE INDEX record_task ON record (namespace, task) WHERE task IS NOT NULL;
CREATE INDEX record_expiry ON record (namespace, expires_at)
    WHERE expires_at IS NOT NULL AND state = 'active';

CREATE TABLE journal (
    namespace INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    "group" INTEGER NOT NULL,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    operation TEXT NOT NULL,
    reason TEXT NOT NULL,
    origin TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    parent TEXT NOT NULL,
    fields TEXT NOT NULL,
    body INTEGER,
    before_version INTEGER NOT NULL,
    before_body INTEGER,
    PRIMARY KEY (namespace, sequence)
) WITHOUT ROWID;
CREATE INDEX journal_memory ON journal (namespace, memory_id);

-- Terms are prefixed with their namespace's number, so that postings are its own.
CREATE TABLE unit (
    position INTEGER PRIMARY KEY,
    length INTEGER NOT NULL,
    terms TEXT NOT NULL
);
CREATE VIRTUAL TABLE lexicon USING fts5 (
    terms, content = 'unit', content_rowid = 'position', tokenize = 'ascii', columnsize = 0
);
CREATE VIRTUAL TABLE lexicon_term USING fts5vocab (lexicon, row);
CREATE VIRTUAL TABLE lexicon_instance USING fts5vocab (lexicon, instance);

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
