CREATE TABLE IF NOT EXISTS {table} (
    key TEXT NOT NULL PRIMARY KEY,
    status TEXT NOT NULL DEFAULT 'processing',
    job TEXT,
    template TEXT,
    mode TEXT,
    on_stale TEXT,
    owner TEXT,
    fence INTEGER NOT NULL DEFAULT 0,
    attempt INTEGER NOT NULL DEFAULT 0,
    takeovers INTEGER NOT NULL DEFAULT 0,
    lease_until INTEGER,
    fingerprint TEXT,
    result TEXT,
    error TEXT,
    worker TEXT,
    expires_at INTEGER,
    alerted_at INTEGER,
    created_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
    completed_at TEXT
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS {expires} ON {table} (expires_at) WHERE expires_at IS NOT NULL;

CREATE INDEX IF NOT EXISTS {claims} ON {table} (status, lease_until)
    WHERE status IN ('processing', 'needs_review');

CREATE TABLE IF NOT EXISTS {audit} (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
    key TEXT NOT NULL,
    actor TEXT NOT NULL,
    from_status TEXT NOT NULL,
    to_status TEXT NOT NULL,
    note TEXT NOT NULL,
    old_result TEXT
);

CREATE INDEX IF NOT EXISTS {audited} ON {audit} (key);

CREATE TABLE IF NOT EXISTS {schema} (
    version INTEGER NOT NULL,
    fence_floor INTEGER NOT NULL DEFAULT 0
);

INSERT INTO {schema} (version) SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM {schema});
