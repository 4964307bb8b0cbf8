-- Types, tables and indexes of the ledger.
--
-- `auditrun ledger init` applies these files in the order of their numbers, in one transaction, after
-- the schema auditrun and the table auditrun.migrations are there. PostgreSQL 13 or later.
--
-- Every column gives back the exact text that was hashed: times keep microseconds, json keeps its
-- text (jsonb would not), digests are the bytes of which the hash takes the hex form.

-- ---- types ---------------------------------------------------------------------------------------

CREATE DOMAIN auditrun.sha256 AS bytea
    CONSTRAINT sha256_form CHECK (octet_length(VALUE) = 32);

-- 32 lower-case hex digits. A regular expression would say it shorter, and cost more than all else of
-- an insert together.
CREATE DOMAIN auditrun.trace_id AS text COLLATE "C"
    CONSTRAINT trace_id_form CHECK (
        octet_length(VALUE) = 32 AND encode(decode(VALUE, 'hex'), 'hex') = VALUE);

CREATE TYPE auditrun.run_status AS ENUM (
    'succeeded', 'failed', 'timed_out', 'limit_exceeded', 'cancelled', 'capability_denied',
    'unauthorized', 'disabled', 'refused', 'provider_failed', 'interrupted');

CREATE TYPE auditrun.run_reason AS ENUM (
    'exit_zero',
    'exit_nonzero', 'killed_by_signal', 'compile_failed',
    'wall_clock',
    'cpu', 'memory', 'processes', 'output', 'scratch',
    'client_cancelled', 'client_gone', 'shutdown',
    'not_enforceable', 'no_such_secret', 'no_executor',
    'company_not_allowed', 'grant_not_allowed', 'executor_not_allowed',
    'globally', 'company', 'executor', 'language',
    'overloaded', 'draining',
    'spawn_failed', 'crashed', 'protocol_violation', 'setup_failed', 'lost',
    'host_restarted');

CREATE TYPE auditrun.event_kind AS ENUM (
    'started', 'stopped', 'reloaded', 'switched', 'executor_registered', 'key_changed', 'gap',
    'clock_stepped', 'partition_retired');

-- ---- the two tables of a chain -------------------------------------------------------------------
-- A writer's rows stand in both, and its seq counts through both: from 1, without holes.

CREATE TABLE auditrun.runs (
    run_id           uuid                NOT NULL,
    writer           uuid                NOT NULL,
    seq              bigint              NOT NULL,
    schema_version   bigint              NOT NULL,
    company          text                NOT NULL,
    actor            text                NOT NULL,
    purpose          text                NOT NULL,
    client_name      text,
    client_uid       bigint              NOT NULL,
    client_gid       bigint              NOT NULL,
    client_pid       bigint              NOT NULL,
    language         text                NOT NULL,
    code_sha256      auditrun.sha256     NOT NULL,
    code_bytes       bigint              NOT NULL,
    "grant"          json                NOT NULL,
    provider         text,
    provider_version text,
    envelope_sha256  auditrun.sha256,
    status           auditrun.run_status NOT NULL,
    reason           auditrun.run_reason NOT NULL,
    denials          json                NOT NULL,
    exit_code        bigint,
    signal           bigint,
    usage            json                NOT NULL,
    trace_id         auditrun.trace_id,
    received_at      timestamptz         NOT NULL,
    started_at       timestamptz,
    finished_at      timestamptz         NOT NULL,
    recorded_at      timestamptz         NOT NULL,
    late             boolean             NOT NULL,
    prev_hash        auditrun.sha256     NOT NULL,
    row_hash         auditrun.sha256     NOT NULL,

    CONSTRAINT runs_pkey PRIMARY KEY (run_id),
    CONSTRAINT runs_seq_check CHECK (seq >= 1),
    CONSTRAINT runs_code_bytes_check CHECK (code_bytes >= 0),
    -- The closed vocabulary: each reason belongs to one status.
    CONSTRAINT runs_status_reason_check CHECK (
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
            ELSE false
        END)
) PARTITION BY RANGE (run_id);
COMMENT ON TABLE auditrun.runs IS 'One immutable row a run';

CREATE TABLE auditrun.events (
    event_id       uuid                NOT NULL,
    writer         uuid                NOT NULL,
    seq            bigint              NOT NULL,
    schema_version bigint              NOT NULL,
    kind           auditrun.event_kind NOT NULL,
    detail         json                NOT NULL,
    happened_at    timestamptz         NOT NULL,
    recorded_at    timestamptz         NOT NULL,
    late           boolean             NOT NULL,
    prev_hash      auditrun.sha256     NOT NULL,
    row_hash       auditrun.sha256     NOT NULL,

    CONSTRAINT events_pkey PRIMARY KEY (event_id),
    CONSTRAINT events_writer_seq_key UNIQUE (writer, seq),
    CONSTRAINT events_seq_check CHECK (seq >= 1)
);
COMMENT ON TABLE auditrun.events IS
    'What the daemons say of themselves, in the same chains as the runs: a quiet hour can be told '
    'from a ledger that was switched off';

-- ---- small tables of the same transactions -------------------------------------------------------
-- They promise what no unique index over partitions can.

CREATE TABLE auditrun.writers (
    writer uuid            NOT NULL,
    seq    bigint          NOT NULL,
    hash   auditrun.sha256 NOT NULL,

    CONSTRAINT writers_pkey PRIMARY KEY (writer),
    CONSTRAINT writers_seq_check CHECK (seq >= 1)
) WITH (fillfactor = 50);
COMMENT ON TABLE auditrun.writers IS
    'The head of every writer''s chain: compare and set, so that no chain can fork';

CREATE TABLE auditrun.keys (
    company         text            NOT NULL,
    idempotency_key text            NOT NULL,
    request_sha256  auditrun.sha256 NOT NULL,
    run_id          uuid            NOT NULL,

    CONSTRAINT keys_pkey PRIMARY KEY (company, idempotency_key)
);
COMMENT ON TABLE auditrun.keys IS
    'Which run an idempotency key belongs to; claimed before it starts';

-- ---- signatures over heads -----------------------------------------------------------------------

CREATE TABLE auditrun.checkpoint_keys (
    key_id        auditrun.sha256 NOT NULL,
    public_key    bytea           NOT NULL,
    registered_at timestamptz     NOT NULL DEFAULT now(),

    CONSTRAINT checkpoint_keys_pkey PRIMARY KEY (key_id),
    CONSTRAINT checkpoint_keys_form CHECK (
        octet_length(public_key) = 32 AND sha256(public_key) = key_id)
);
COMMENT ON TABLE auditrun.checkpoint_keys IS
    'Public keys (Ed25519, raw) of checkpoints. What is here says nothing about trust: compare key_id '
    'with what you know from elsewhere';

CREATE TABLE auditrun.checkpoints (
    writer    uuid            NOT NULL,
    seq       bigint          NOT NULL,
    row_hash  auditrun.sha256 NOT NULL,
    made_at   timestamptz     NOT NULL,
    key_id    auditrun.sha256 NOT NULL,
    signature bytea           NOT NULL,

    CONSTRAINT checkpoints_pkey PRIMARY KEY (writer, seq, key_id),
    CONSTRAINT checkpoints_key_id_fkey FOREIGN KEY (key_id) REFERENCES auditrun.checkpoint_keys,
    CONSTRAINT checkpoints_seq_check CHECK (seq >= 1),
    CONSTRAINT checkpoints_signature_form CHECK (octet_length(signature) = 64)
);
COMMENT ON TABLE auditrun.checkpoints IS
    'Signed heads of chains: a copy of what the daemons also log, out of the database''s reach';

-- ---- settings ------------------------------------------------------------------------------------

CREATE TABLE auditrun.readers (
    role    text NOT NULL,
    company text NOT NULL,

    CONSTRAINT readers_pkey PRIMARY KEY (role, company)
);
COMMENT ON TABLE auditrun.readers IS
    'Which login role, a member of auditrun_reader, reads which company''s runs';

CREATE TABLE auditrun.settings (
    only_row        boolean NOT NULL DEFAULT true,
    partition_width text    NOT NULL,

    CONSTRAINT settings_pkey PRIMARY KEY (only_row),
    CONSTRAINT settings_only_row_check CHECK (only_row),
    CONSTRAINT settings_partition_width_check CHECK (partition_width IN ('day', 'week', 'month'))
);
COMMENT ON TABLE auditrun.settings IS 'One row: what was chosen when the ledger was made';

-- The program says its choice, if it has one, in a parameter of its transaction.
INSERT INTO auditrun.settings (partition_width)
VALUES (COALESCE(NULLIF(current_setting('auditrun.partition_width', true), ''), 'week'));

-- ---- indexes -------------------------------------------------------------------------------------
-- Each partition gets its own, so that what an append touches stays as small as one partition.

CREATE INDEX runs_writer_seq ON auditrun.runs (writer, seq);
CREATE INDEX runs_company ON auditrun.runs (company, run_id);
CREATE INDEX runs_actor ON auditrun.runs (actor, run_id);
-- A digest is looked for whole: half as large as a tree of digests, whose random pages are what an
-- append pays most for.
CREATE INDEX runs_code ON auditrun.runs USING hash (code_sha256);
-- The rare ones: who looks for runs that succeeded wants nearly all of them.
CREATE INDEX runs_status ON auditrun.runs (status, run_id) WHERE status <> 'succeeded';
