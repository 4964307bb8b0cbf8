-- The ledger: one immutable row a run, the head of every writer's chain, the idempotency keys.
--
-- Applied by `auditrun ledger init` inside one transaction, after the table migrations is there.
-- The same names as in PostgreSQL. Times are canonical text, late is 0 or 1, JSON is RFC 8785 text:
-- every column gives back the exact text that was hashed.

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

CREATE TABLE writers (
    writer TEXT    NOT NULL PRIMARY KEY,
    seq    INTEGER NOT NULL CHECK (typeof(seq) = 'integer' AND seq >= 1),
    hash   TEXT    NOT NULL CHECK (length(hash) = 64)
) WITHOUT ROWID;

CREATE TABLE keys (
    company         TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    request_sha256  TEXT NOT NULL CHECK (length(request_sha256) = 64),
    run_id          TEXT NOT NULL,

    PRIMARY KEY (company, idempotency_key)
) WITHOUT ROWID;

-- Changes are refused. INSERT OR REPLACE deletes without asking the triggers for DELETE (unless
-- recursive_triggers is on), so an insert over a row that is there has triggers of its own.

CREATE TRIGGER runs_refuse_update BEFORE UPDATE ON runs
BEGIN
    SELECT RAISE(ABORT, 'auditrun: UPDATE of runs is refused, the ledger is append-only');
END;
CREATE TRIGGER runs_refuse_delete BEFORE DELETE ON runs
BEGIN
    SELECT RAISE(ABORT, 'auditrun: DELETE of runs is refused, the ledger is append-only');
END;
CREATE TRIGGER runs_refuse_replace BEFORE INSERT ON runs
    WHEN EXISTS (SELECT 1 FROM runs WHERE run_id = NEW.run_id)
        OR EXISTS (SELECT 1 FROM runs WHERE writer = NEW.writer AND seq = NEW.seq)
BEGIN
    SELECT RAISE(ABORT, 'auditrun: the row is there already');
END;

CREATE TRIGGER writers_refuse_step_back BEFORE UPDATE ON writers
    WHEN NEW.writer <> OLD.writer OR NEW.seq <= OLD.seq
BEGIN
    SELECT RAISE(ABORT, 'auditrun: the head of a chain only moves forward');
END;
CREATE TRIGGER writers_refuse_delete BEFORE DELETE ON writers
BEGIN
    SELECT RAISE(ABORT, 'auditrun: DELETE of writers is refused, the ledger is append-only');
END;
CREATE TRIGGER writers_refuse_replace BEFORE INSERT ON writers
    WHEN EXISTS (SELECT 1 FROM writers WHERE writer = NEW.writer)
BEGIN
    SELECT RAISE(IGNORE);
END;

CREATE TRIGGER keys_refuse_update BEFORE UPDATE ON keys
BEGIN
    SELECT RAISE(ABORT, 'auditrun: UPDATE of keys is refused, the ledger is append-only');
END;
CREATE TRIGGER keys_refuse_delete BEFORE DELETE ON keys
BEGIN
    SELECT RAISE(ABORT, 'auditrun: DELETE of keys is refused, the ledger is append-only');
END;
CREATE TRIGGER keys_refuse_replace BEFORE INSERT ON keys
    WHEN EXISTS (SELECT 1 FROM keys
                 WHERE company = NEW.company AND idempotency_key = NEW.idempotency_key)
BEGIN
    SELECT RAISE(IGNORE);
END;
