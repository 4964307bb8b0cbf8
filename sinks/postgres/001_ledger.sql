-- The ledger: one immutable row a run, the head of every writer's chain, the idempotency keys.
--
-- Applied by `auditrun ledger init` inside one transaction, after the schema auditrun and the table
-- auditrun.migrations are there. PostgreSQL 13 or later.
--
-- Every column gives back the exact text that was hashed: times keep microseconds, json keeps its
-- text (jsonb would not), digests are lower-case hex. auditrun.row_hash() recomputes a row's hash.

-- 64 lower-case hex digits. A regular expression would say it shorter, and cost more than all else
-- of an insert together.
CREATE DOMAIN auditrun.sha256 AS text COLLATE "C"
    CONSTRAINT sha256_form CHECK (
        octet_length(VALUE) = 64 AND encode(decode(VALUE, 'hex'), 'hex') = VALUE);

CREATE TABLE auditrun.runs (
    run_id           uuid            NOT NULL,
    writer           uuid            NOT NULL,
    seq              bigint          NOT NULL,
    schema_version   bigint          NOT NULL,
    company          text            NOT NULL,
    actor            text            NOT NULL,
    purpose          text            NOT NULL,
    client_name      text,
    client_uid       bigint          NOT NULL,
    client_gid       bigint          NOT NULL,
    client_pid       bigint          NOT NULL,
    language         text            NOT NULL,
    code_sha256      auditrun.sha256 NOT NULL,
    code_bytes       bigint          NOT NULL,
    "grant"          json            NOT NULL,
    provider         text,
    provider_version text,
    envelope_sha256  auditrun.sha256,
    status           text            NOT NULL,
    reason           text            NOT NULL,
    denials          json            NOT NULL,
    exit_code        bigint,
    signal           bigint,
    usage            json            NOT NULL,
    trace_id         text,
    received_at      timestamptz     NOT NULL,
    started_at       timestamptz,
    finished_at      timestamptz     NOT NULL,
    recorded_at      timestamptz     NOT NULL,
    late             boolean         NOT NULL,
    prev_hash        auditrun.sha256 NOT NULL,
    row_hash         auditrun.sha256 NOT NULL,

    CONSTRAINT runs_pkey PRIMARY KEY (run_id),
    CONSTRAINT runs_writer_seq_key UNIQUE (writer, seq),
    CONSTRAINT runs_seq_check CHECK (seq >= 1),
    CONSTRAINT runs_code_bytes_check CHECK (code_bytes >= 0),
    CONSTRAINT runs_trace_id_check CHECK (octet_length(trace_id) = 32),
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
);
COMMENT ON TABLE auditrun.runs IS 'One immutable row a run';

CREATE TABLE auditrun.writers (
    writer uuid            NOT NULL,
    seq    bigint          NOT NULL,
    hash   auditrun.sha256 NOT NULL,

    CONSTRAINT writers_pkey PRIMARY KEY (writer),
    CONSTRAINT writers_seq_check CHECK (seq >= 1)
) WITH (fillfactor = 50);
COMMENT ON TABLE auditrun.writers IS 'The head of every writer''s chain: compare and set';

CREATE TABLE auditrun.keys (
    company         text            NOT NULL,
    idempotency_key text            NOT NULL,
    request_sha256  auditrun.sha256 NOT NULL,
    run_id          uuid            NOT NULL,

    CONSTRAINT keys_pkey PRIMARY KEY (company, idempotency_key)
);
COMMENT ON TABLE auditrun.keys IS 'Which run an idempotency key belongs to; claimed before it starts';

-- Changes are refused, to the owner too, and also where session_replication_role is replica.

CREATE FUNCTION auditrun.refuse_change() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    RAISE EXCEPTION 'auditrun: % of % is refused, the ledger is append-only', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'insufficient_privilege';
END
$$;

CREATE FUNCTION auditrun.refuse_step_back() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    IF NEW.writer <> OLD.writer OR NEW.seq <= OLD.seq THEN
        RAISE EXCEPTION 'auditrun: the head of a chain only moves forward'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER runs_refuse_change BEFORE UPDATE OR DELETE OR TRUNCATE ON auditrun.runs
    FOR EACH STATEMENT EXECUTE FUNCTION auditrun.refuse_change();
CREATE TRIGGER keys_refuse_change BEFORE UPDATE OR DELETE OR TRUNCATE ON auditrun.keys
    FOR EACH STATEMENT EXECUTE FUNCTION auditrun.refuse_change();
CREATE TRIGGER writers_refuse_change BEFORE DELETE OR TRUNCATE ON auditrun.writers
    FOR EACH STATEMENT EXECUTE FUNCTION auditrun.refuse_change();
CREATE TRIGGER writers_refuse_step_back BEFORE UPDATE ON auditrun.writers
    FOR EACH ROW EXECUTE FUNCTION auditrun.refuse_step_back();

ALTER TABLE auditrun.runs ENABLE ALWAYS TRIGGER runs_refuse_change;
ALTER TABLE auditrun.keys ENABLE ALWAYS TRIGGER keys_refuse_change;
ALTER TABLE auditrun.writers ENABLE ALWAYS TRIGGER writers_refuse_change;
ALTER TABLE auditrun.writers ENABLE ALWAYS TRIGGER writers_refuse_step_back;

-- The hash in plain SQL, for anybody who would rather not trust the C code. Names are qualified and
-- the functions have no settings of their own, so that the planner can inline them: a scan over the
-- whole ledger is one expression a row.

CREATE FUNCTION auditrun.canonical_line(name text, value text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT $1 OPERATOR(pg_catalog.||) COALESCE(':' OPERATOR(pg_catalog.||) $2, '')
        OPERATOR(pg_catalog.||) E'\n'
$$;

CREATE FUNCTION auditrun.canonical_time(at timestamptz) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT pg_catalog.to_char(pg_catalog.timezone('UTC', $1), 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;

CREATE FUNCTION auditrun.row_canonical(r auditrun.runs) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT pg_catalog.concat(
        auditrun.canonical_line('run_id', r.run_id::pg_catalog.text),
        auditrun.canonical_line('writer', r.writer::pg_catalog.text),
        auditrun.canonical_line('seq', r.seq::pg_catalog.text),
        auditrun.canonical_line('schema_version', r.schema_version::pg_catalog.text),
        auditrun.canonical_line('company', r.company),
        auditrun.canonical_line('actor', r.actor),
        auditrun.canonical_line('purpose', r.purpose),
        auditrun.canonical_line('client_name', r.client_name),
        auditrun.canonical_line('client_uid', r.client_uid::pg_catalog.text),
        auditrun.canonical_line('client_gid', r.client_gid::pg_catalog.text),
        auditrun.canonical_line('client_pid', r.client_pid::pg_catalog.text),
        auditrun.canonical_line('language', r.language),
        auditrun.canonical_line('code_sha256', r.code_sha256),
        auditrun.canonical_line('code_bytes', r.code_bytes::pg_catalog.text),
        auditrun.canonical_line('grant', r."grant"::pg_catalog.text),
        auditrun.canonical_line('provider', r.provider),
        auditrun.canonical_line('provider_version', r.provider_version),
        auditrun.canonical_line('envelope_sha256', r.envelope_sha256),
        auditrun.canonical_line('status', r.status),
        auditrun.canonical_line('reason', r.reason),
        auditrun.canonical_line('denials', r.denials::pg_catalog.text),
        auditrun.canonical_line('exit_code', r.exit_code::pg_catalog.text),
        auditrun.canonical_line('signal', r.signal::pg_catalog.text),
        auditrun.canonical_line('usage', r.usage::pg_catalog.text),
        auditrun.canonical_line('trace_id', r.trace_id),
        auditrun.canonical_line('received_at', auditrun.canonical_time(r.received_at)),
        auditrun.canonical_line('started_at', auditrun.canonical_time(r.started_at)),
        auditrun.canonical_line('finished_at', auditrun.canonical_time(r.finished_at)),
        auditrun.canonical_line('recorded_at', auditrun.canonical_time(r.recorded_at)),
        auditrun.canonical_line('late', CASE WHEN r.late THEN 'true' ELSE 'false' END))
$$;
COMMENT ON FUNCTION auditrun.row_canonical(auditrun.runs) IS
    'The canonical text of a row: what its hash is taken over, after prev_hash and a newline';

CREATE FUNCTION auditrun.row_hash(r auditrun.runs) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(
        pg_catalog.concat(r.prev_hash, E'\n', auditrun.row_canonical(r)), 'UTF8')), 'hex')
$$;
COMMENT ON FUNCTION auditrun.row_hash(auditrun.runs) IS
    'SELECT run_id FROM auditrun.runs AS r WHERE auditrun.row_hash(r) <> r.row_hash lists altered rows';
