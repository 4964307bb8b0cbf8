-- Tables and indexes of the ledger: one immutable row a run, the daemon's events in the same chains,
-- the head of every writer's chain, idempotency keys, signatures over heads.
--
-- `auditrun ledger init` applies these files in the order of their numbers, inside one transaction,
-- after the table migrations is there. The same names as in PostgreSQL. Times are canonical text,
-- digests lower-case hex, late is 0 or 1, JSON is RFC 8785 text: every column gives back the exact
-- text that was hashed.

-- ---- the two tables of a chain -------------------------------------------------------------------
-- A writer's rows stand in both, and its seq counts through both: from 1, without holes.

CREATE TABLE runs (
    run_id           TEXT    NOT NULL PRIMARY KEY,
    writer           TEXT    NOT NULL,
    seq              INTEGER NOT NULL CHECK (typeof(seq) = 'integer' AND seq >= 1),
    schema_version   INTEGER NOT NULL,
    company          TEXT    NOT NULL,
    actor            TEXT    NOT NULL,
    purpose          TEXT    NOT NULL,
    client_name      TEXT,
    client_uid       INTEGER NOT NULL,
    client_gid       INTEGER NOT NULL,
    client_pid       INTEGER NOT NULL,
    language         TEXT    NOT NULL,
    code_sha256      TEXT    NOT NULL CHECK (length(code_sha256) = 64),
    code_bytes       INTEGER NOT NULL CHECK (code_bytes >= 0),
    "grant"          TEXT    NOT NULL,
    provider         TEXT,
    provider_version TEXT,
    envelope_sha256  TEXT    CHECK (length(envelope_sha256) = 64),
    status           TEXT    NOT NULL,
    reason           TEXT    NOT NULL,
    denials          TEXT    NOT NULL,
    exit_code        INTEGER,
    signal           INTEGER,
    usage            TEXT    NOT NULL,
    trace_id         TEXT    CHECK (length(trace_id) = 32),
    received_at      TEXT    NOT NULL,
    started_at       TEXT,
    finished_at      TEXT    NOT NULL,
    recorded_at      TEXT    NOT NULL,
    late             INTEGER NOT NULL CHECK (late IN (0, 1)),
    prev_hash        TEXT    NOT NULL CHECK (length(prev_hash) = 64),
    row_hash         TEXT    NOT NULL CHECK (length(row_hash) = 64),

    UNIQUE (writer, seq),
    -- The closed vocabulary: each reason belongs to one status.
    CHECK (
        CASE status
            WHEN 'succeeded' THEN reason = 'exit_zero'
            WHEN 'failed' THEN reason IN ('exit_nonzero', 'killed_by_signal', 'compile_failed')
            WHEN 'timed_out' THEN reason = 'wall_clock'
            WHEN 'limit_exceeded' THEN
                reason IN ('cpu', 'memory', 'processes', 'output', 'scratch')
            WHEN 'cancelled' THEN reason IN ('client_cancelled', 'client_gone', 'shutdown')
            WHEN 'capability_denied' THEN
                reason IN ('not_enforceable', 'no_such_secret', 'no_executor')
            WHEN 'unauthorized' THEN
                reason IN ('company_not_allowed', 'grant_not_allowed', 'executor_not_allowed')
            WHEN 'disabled' THEN reason IN ('globally', 'company', 'executor', 'language')
            WHEN 'refused' THEN reason IN ('overloaded', 'draining')
            WHEN 'provider_failed' THEN
                reason IN ('spawn_failed', 'crashed', 'protocol_violation', 'setup_failed', 'lost')
            WHEN 'interrupted' THEN reason = 'host_restarted'
            ELSE 0
        END)
);

CREATE TABLE events (
    event_id       TEXT    NOT NULL PRIMARY KEY,
    writer         TEXT    NOT NULL,
    seq            INTEGER NOT NULL CHECK (typeof(seq) = 'integer' AND seq >= 1),
    schema_version INTEGER NOT NULL,
    kind           TEXT    NOT NULL CHECK (
        kind IN ('started', 'stopped', 'reloaded', 'switched', 'executor_registered', 'key_changed',
                 'gap', 'clock_stepped', 'partition_retired')),
    detail         TEXT    NOT NULL,
    happened_at    TEXT    NOT NULL,
    recorded_at    TEXT    NOT NULL,
    late           INTEGER NOT NULL CHECK (late IN (0, 1)),
    prev_hash      TEXT    NOT NULL CHECK (length(prev_hash) = 64),
    row_hash       TEXT    NOT NULL CHECK (length(row_hash) = 64),

    UNIQUE (writer, seq)
);

-- ---- small tables of the same transactions -------------------------------------------------------

-- confirmed counts how often a daemon asked, with a transaction that writes, whether this is the
-- head: SQLite writes no page for an update that changes nothing.
CREATE TABLE writers (
    writer    TEXT    NOT NULL PRIMARY KEY,
    seq       INTEGER NOT NULL CHECK (typeof(seq) = 'integer' AND seq >= 1),
    hash      TEXT    NOT NULL CHECK (length(hash) = 64),
    confirmed INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

CREATE TABLE keys (
    company         TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    request_sha256  TEXT NOT NULL CHECK (length(request_sha256) = 64),
    run_id          TEXT NOT NULL,

    PRIMARY KEY (company, idempotency_key)
) WITHOUT ROWID;

-- ---- signatures over heads -----------------------------------------------------------------------

-- Public keys (Ed25519, hex of the 32 bytes). What is here says nothing about trust: compare key_id
-- with what you know from elsewhere.
CREATE TABLE checkpoint_keys (
    key_id        TEXT NOT NULL PRIMARY KEY CHECK (length(key_id) = 64),
    public_key    TEXT NOT NULL CHECK (length(public_key) = 64),
    registered_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ'))
) WITHOUT ROWID;

-- A copy of what the daemons also log, out of the reach of whoever can write to this file.
CREATE TABLE checkpoints (
    writer    TEXT    NOT NULL,
    seq       INTEGER NOT NULL CHECK (typeof(seq) = 'integer' AND seq >= 1),
    row_hash  TEXT    NOT NULL CHECK (length(row_hash) = 64),
    made_at   TEXT    NOT NULL,
    key_id    TEXT    NOT NULL REFERENCES checkpoint_keys,
    signature TEXT    NOT NULL CHECK (length(signature) = 128),

    PRIMARY KEY (writer, seq, key_id)
) WITHOUT ROWID;

-- ---- indexes -------------------------------------------------------------------------------------

CREATE INDEX runs_company ON runs (company, run_id);
CREATE INDEX runs_actor ON runs (actor, run_id);
CREATE INDEX runs_code ON runs (code_sha256);
-- The rare ones: who looks for runs that succeeded wants nearly all of them.
CREATE INDEX runs_status ON runs (status, run_id) WHERE status <> 'succeeded';
CREATE INDEX events_kind ON events (kind, event_id);
