-- The hash in plain SQL, for anybody who would rather not trust the C code:
--
--     row_hash = SHA-256(hex of prev_hash, newline, canonical form of the row)
--
-- Names are qualified and the functions have no settings of their own, so that the planner can inline
-- them: a scan over the whole ledger is one expression a row.

CREATE FUNCTION auditrun.canonical_line(name text, value text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT $1 OPERATOR(pg_catalog.||) COALESCE(':' OPERATOR(pg_catalog.||) $2, '')
        OPERATOR(pg_catalog.||) E'\n'
$$;
COMMENT ON FUNCTION auditrun.canonical_line(text, text) IS
    'One column of the canonical form; null has no colon, so that it differs from empty';

CREATE FUNCTION auditrun.canonical_time(at timestamptz) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT pg_catalog.to_char(pg_catalog.timezone('UTC', $1), 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;
COMMENT ON FUNCTION auditrun.canonical_time(timestamptz) IS '2026-01-31T12:00:00.123456Z';

CREATE FUNCTION auditrun.canonical_hash(prev_hash auditrun.sha256, canonical text)
    RETURNS auditrun.sha256
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT pg_catalog.sha256(pg_catalog.convert_to(
        pg_catalog.encode($1, 'hex') OPERATOR(pg_catalog.||) E'\n' OPERATOR(pg_catalog.||) $2,
        'UTF8'))
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
        auditrun.canonical_line('code_sha256', pg_catalog.encode(r.code_sha256, 'hex')),
        auditrun.canonical_line('code_bytes', r.code_bytes::pg_catalog.text),
        auditrun.canonical_line('grant', r."grant"::pg_catalog.text),
        auditrun.canonical_line('provider', r.provider),
        auditrun.canonical_line('provider_version', r.provider_version),
        auditrun.canonical_line('envelope_sha256', pg_catalog.encode(r.envelope_sha256, 'hex')),
        auditrun.canonical_line('status', r.status::pg_catalog.text),
        auditrun.canonical_line('reason', r.reason::pg_catalog.text),
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
    'The canonical text of a run: what its hash is taken over, after prev_hash and a newline';

CREATE FUNCTION auditrun.row_canonical(e auditrun.events) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT pg_catalog.concat(
        auditrun.canonical_line('event_id', e.event_id::pg_catalog.text),
        auditrun.canonical_line('writer', e.writer::pg_catalog.text),
        auditrun.canonical_line('seq', e.seq::pg_catalog.text),
        auditrun.canonical_line('schema_version', e.schema_version::pg_catalog.text),
        auditrun.canonical_line('kind', e.kind::pg_catalog.text),
        auditrun.canonical_line('detail', e.detail::pg_catalog.text),
        auditrun.canonical_line('happened_at', auditrun.canonical_time(e.happened_at)),
        auditrun.canonical_line('recorded_at', auditrun.canonical_time(e.recorded_at)),
        auditrun.canonical_line('late', CASE WHEN e.late THEN 'true' ELSE 'false' END))
$$;
COMMENT ON FUNCTION auditrun.row_canonical(auditrun.events) IS
    'The canonical text of an event: what its hash is taken over, after prev_hash and a newline';

CREATE FUNCTION auditrun.row_hash(r auditrun.runs) RETURNS auditrun.sha256
    LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT auditrun.canonical_hash(r.prev_hash, auditrun.row_canonical(r))
$$;
COMMENT ON FUNCTION auditrun.row_hash(auditrun.runs) IS
    'SELECT run_id FROM auditrun.runs AS r WHERE auditrun.row_hash(r) <> r.row_hash lists altered rows';

CREATE FUNCTION auditrun.row_hash(e auditrun.events) RETURNS auditrun.sha256
    LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT auditrun.canonical_hash(e.prev_hash, auditrun.row_canonical(e))
$$;
COMMENT ON FUNCTION auditrun.row_hash(auditrun.events) IS
    'SELECT event_id FROM auditrun.events AS e WHERE auditrun.row_hash(e) <> e.row_hash';
