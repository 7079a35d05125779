CREATE TABLE IF NOT EXISTS {table} (
    key varchar(255) COLLATE "C" PRIMARY KEY,
    status text NOT NULL DEFAULT 'processing',
    job text,
    template text,
    mode text,
    on_stale text,
    owner text,
    fence bigint NOT NULL DEFAULT 0,
    attempt integer NOT NULL DEFAULT 0,
    takeovers integer NOT NULL DEFAULT 0,
    lease_until bigint,
    fingerprint text,
    result text,
    error text,
    worker text,
    expires_at bigint,
    alerted_at bigint,
    created_at timestamptz NOT NULL DEFAULT CURRENT_TIMESTAMP,
    completed_at timestamptz
) WITH (fillfactor = 50);

CREATE INDEX IF NOT EXISTS {expires} ON {table} (expires_at) WHERE expires_at IS NOT NULL;

CREATE INDEX IF NOT EXISTS {claims} ON {table} (status, lease_until)
    WHERE status IN ('processing', 'needs_review');

CREATE TABLE IF NOT EXISTS {audit} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT CURRENT_TIMESTAMP,
    key text NOT NULL,
    actor text NOT NULL,
    from_status text NOT NULL,
    to_status text NOT NULL,
    note text NOT NULL,
    old_result text
);

CREATE INDEX IF NOT EXISTS {audited} ON {audit} (key);

CREATE TABLE IF NOT EXISTS {schema} (
    version integer NOT NULL,
    fence_floor bigint NOT NULL DEFAULT 0
);

INSERT INTO {schema} (version) SELECT 1 WHERE NOT EXISTS (SELECT FROM {schema});
