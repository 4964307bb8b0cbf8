-- Every chain from its first row to its head in plain SQL, with the verdict of `auditrun verify`
-- (but for the signatures, which SQL cannot check):
--
--     SELECT * FROM auditrun.verify();
--
-- It names the first bad row in the order of (writer, seq). A row is, in this order, `unreadable` (a
-- column does not have its form), `repeated` (its seq was there), `missing` (a seq before it is not
-- there), `altered` (its columns do not give row_hash), `unlinked` (prev_hash is not the hash of the
-- row before), `head_differs` (it is beyond the head), `checkpoint_differs` (a checkpoint has another
-- hash). A chain that ends before its head is `head_differs`, one that ends before a checkpoint is
-- `checkpoint_differs`, at the first seq that is not there.

-- ---- one row a row of any chain ------------------------------------------------------------------

CREATE FUNCTION auditrun.is_readable(at timestamptz) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT $1 OPERATOR(pg_catalog.>=) pg_catalog.timestamptz '0001-01-01 00:00:00Z'
        AND $1 OPERATOR(pg_catalog.<) pg_catalog.timestamptz '10000-01-01 00:00:00Z'
$$;
COMMENT ON FUNCTION auditrun.is_readable(timestamptz) IS
    'Is it in the years 0001 to 9999, which the canonical form can tell?';

CREATE FUNCTION auditrun.is_readable(line text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT $1 OPERATOR(pg_catalog.!~) E'[\\u0001-\\u001f\\u007f-\\u009f]'
$$;
COMMENT ON FUNCTION auditrun.is_readable(text) IS 'Is it free of control characters?';

CREATE FUNCTION auditrun.is_readable(id uuid) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT $1::pg_catalog.text OPERATOR(pg_catalog.~~) '______________7____%'
        AND pg_catalog.substr($1::pg_catalog.text, 20, 1) OPERATOR(pg_catalog.~) '[89ab]'
$$;
COMMENT ON FUNCTION auditrun.is_readable(uuid) IS 'Is it of version 7?';

-- The lowest bigint stands for null in the programs, and is no value.
CREATE FUNCTION auditrun.is_readable(r auditrun.runs) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT auditrun.is_readable(r.run_id)
        AND auditrun.is_readable(pg_catalog.concat(r.company, r.actor, r.purpose, r.client_name,
                r.language, r.provider, r.provider_version))
        AND pg_catalog.json_typeof(r."grant") OPERATOR(pg_catalog.=) 'object'
        AND pg_catalog.json_typeof(r.denials) OPERATOR(pg_catalog.=) 'array'
        AND pg_catalog.json_typeof(r.usage) OPERATOR(pg_catalog.=) 'object'
        AND LEAST(r.schema_version, r.client_uid, r.client_gid, r.client_pid, r.exit_code, r.signal)
            OPERATOR(pg_catalog.>) (-9223372036854775808)::pg_catalog.int8
        AND auditrun.is_readable(r.received_at)
        AND (r.started_at IS NULL OR auditrun.is_readable(r.started_at))
        AND auditrun.is_readable(r.finished_at)
        AND auditrun.is_readable(r.recorded_at)
$$;

CREATE FUNCTION auditrun.is_readable(e auditrun.events) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT auditrun.is_readable(e.event_id)
        AND pg_catalog.json_typeof(e.detail) OPERATOR(pg_catalog.=) 'object'
        AND e.schema_version OPERATOR(pg_catalog.>) (-9223372036854775808)::pg_catalog.int8
        AND auditrun.is_readable(e.happened_at)
        AND auditrun.is_readable(e.recorded_at)
$$;

CREATE VIEW auditrun.chain AS
    SELECT r.writer, r.seq, r.run_id AS row_id, 'run' AS kind, r.prev_hash, r.row_hash,
        auditrun.row_hash(r) AS computed_hash, auditrun.is_readable(r) AS readable
    FROM auditrun.runs AS r
    UNION ALL
    SELECT e.writer, e.seq, e.event_id, e.kind::text, e.prev_hash, e.row_hash,
        auditrun.row_hash(e), auditrun.is_readable(e)
    FROM auditrun.events AS e;
COMMENT ON VIEW auditrun.chain IS
    'The rows of all chains, runs and events, with the hash that their columns give: '
    'SELECT * FROM auditrun.chain WHERE writer = ... ORDER BY seq';

-- ---- what retired partitions left ----------------------------------------------------------------

-- As the events tell it; what does not have the form of a range is none.
CREATE FUNCTION auditrun.retired_ranges()
    RETURNS TABLE (writer uuid, first_seq bigint, last_seq bigint, prev_hash bytea, last_hash bytea)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT DISTINCT CASE WHEN form.fits THEN (range ->> 'writer')::uuid END,
        CASE WHEN form.fits THEN (range ->> 'first_seq')::bigint END,
        CASE WHEN form.fits THEN (range ->> 'last_seq')::bigint END,
        CASE WHEN form.fits THEN decode(range ->> 'prev_hash', 'hex') END,
        CASE WHEN form.fits THEN decode(range ->> 'last_hash', 'hex') END
    FROM auditrun.events AS e
    CROSS JOIN LATERAL json_array_elements(
        CASE WHEN json_typeof(e.detail -> 'ranges') = 'array' THEN e.detail -> 'ranges' ELSE '[]' END)
        AS range
    CROSS JOIN LATERAL (SELECT
        range ->> 'writer' ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
        AND range ->> 'first_seq' ~ '^[1-9][0-9]{0,17}$'
        AND range ->> 'last_seq' ~ '^[1-9][0-9]{0,17}$'
        AND range ->> 'prev_hash' ~ '^[0-9a-f]{64}$'
        AND range ->> 'last_hash' ~ '^[0-9a-f]{64}$') AS form (fits)
    WHERE e.kind = 'partition_retired' AND form.fits
$$;
COMMENT ON FUNCTION auditrun.retired_ranges() IS
    'Rows that a retired partition took with it, by writer and seq, and the hashes at both ends';

-- Those that continue a chain, where no row does: from its start, from a row, or from a range before.
CREATE FUNCTION auditrun.retired_links(only_writer uuid DEFAULT NULL)
    RETURNS TABLE (writer uuid, first_seq bigint, last_seq bigint, prev_hash bytea, last_hash bytea)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE candidates AS MATERIALIZED (
        SELECT g.* FROM auditrun.retired_ranges() AS g
        WHERE (only_writer IS NULL OR g.writer = only_writer) AND g.first_seq <= g.last_seq
            AND NOT EXISTS (SELECT FROM auditrun.chain AS c
                            WHERE c.writer = g.writer AND c.seq = g.first_seq)
    ), links AS (
        SELECT g.* FROM candidates AS g
        WHERE (g.first_seq = 1 AND g.prev_hash = decode(repeat('00', 32), 'hex'))
            OR EXISTS (SELECT FROM auditrun.chain AS c
                       WHERE c.writer = g.writer AND c.seq = g.first_seq - 1
                           AND c.row_hash = g.prev_hash)
        UNION
        SELECT g.* FROM links AS l JOIN candidates AS g
            ON g.writer = l.writer AND g.first_seq = l.last_seq + 1 AND g.prev_hash = l.last_hash
    )
    SELECT * FROM links
$$;

-- ---- the verdict ---------------------------------------------------------------------------------

-- Every writer that anything speaks of; skips through the indexes instead of reading every row.
CREATE FUNCTION auditrun.chain_writers() RETURNS SETOF uuid
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE found AS (
        SELECT (SELECT r.writer FROM auditrun.runs AS r ORDER BY r.writer LIMIT 1) AS writer
        UNION ALL
        SELECT (SELECT r.writer FROM auditrun.runs AS r
                WHERE r.writer > f.writer ORDER BY r.writer LIMIT 1)
        FROM found AS f WHERE f.writer IS NOT NULL
    )
    SELECT f.writer FROM found AS f WHERE f.writer IS NOT NULL
    UNION SELECT e.writer FROM auditrun.events AS e
    UNION SELECT w.writer FROM auditrun.writers AS w
    UNION SELECT c.writer FROM auditrun.checkpoints AS c
$$;

-- The first row that is wrong by what stands before it, if any.
CREATE FUNCTION auditrun.verify_rows(only_writer uuid)
    RETURNS TABLE (finding text, writer uuid, seq bigint, row_id uuid, rows bigint)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH items AS (
        SELECT c.writer, c.seq AS first_seq, c.seq AS last_seq, c.row_id, c.prev_hash,
            c.row_hash AS last_hash, c.computed_hash, c.readable, true AS is_row
        FROM auditrun.chain AS c WHERE only_writer IS NULL OR c.writer = only_writer
        UNION ALL
        SELECT l.writer, l.first_seq, l.last_seq, NULL, l.prev_hash, l.last_hash, NULL, NULL, false
        FROM auditrun.retired_links(only_writer) AS l
    ), walked AS (
        SELECT i.*, lag(i.last_seq, 1, 0::bigint) OVER chain AS before_seq,
            lag(i.last_hash::bytea, 1, decode(repeat('00', 32), 'hex')) OVER chain AS before_hash,
            count(*) FILTER (WHERE i.is_row) OVER (
                ORDER BY i.writer, i.first_seq ROWS UNBOUNDED PRECEDING) AS rows
        FROM items AS i
        WINDOW chain AS (PARTITION BY i.writer ORDER BY i.first_seq)
    ), judged AS (
        SELECT w.*, CASE
            WHEN NOT w.readable THEN 'unreadable'
            WHEN w.first_seq <= w.before_seq THEN 'repeated'
            WHEN w.first_seq > w.before_seq + 1 THEN 'missing'
            WHEN w.computed_hash <> w.last_hash THEN 'altered'
            WHEN w.prev_hash <> w.before_hash THEN 'unlinked'
            WHEN h.seq IS NULL OR w.first_seq > h.seq THEN 'head_differs'
            WHEN EXISTS (SELECT FROM auditrun.checkpoints AS k
                         WHERE k.writer = w.writer AND k.seq = w.first_seq
                             AND k.row_hash <> w.last_hash AND w.is_row) THEN 'checkpoint_differs'
            END AS finding
        FROM walked AS w LEFT JOIN auditrun.writers AS h ON h.writer = w.writer
    )
    SELECT j.finding, j.writer,
        CASE j.finding WHEN 'missing' THEN j.before_seq + 1 ELSE j.first_seq END,
        CASE WHEN j.finding NOT IN ('missing', 'unreadable') THEN j.row_id END,
        CASE WHEN j.is_row THEN j.rows - 1 ELSE j.rows END
    FROM judged AS j WHERE j.finding IS NOT NULL
    ORDER BY j.writer, j.first_seq LIMIT 1
$$;

-- The first chain that does not end at its head, or ends before a checkpoint of it.
CREATE FUNCTION auditrun.verify_ends(only_writer uuid)
    RETURNS TABLE (finding text, writer uuid, seq bigint, row_id uuid)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH links AS MATERIALIZED (
        SELECT l.* FROM auditrun.retired_links(only_writer) AS l
    ), ends AS (
        SELECT w.writer, COALESCE(h.seq, 0) AS head_seq,
            COALESCE(h.hash, decode(repeat('00', 32), 'hex')) AS head_hash,
            COALESCE(l.last_seq, c.seq, 0) AS seq,
            COALESCE(l.last_hash, c.row_hash, decode(repeat('00', 32), 'hex')) AS hash,
            CASE WHEN l.last_seq IS NULL THEN c.row_id END AS row_id,
            (SELECT max(k.seq) FROM auditrun.checkpoints AS k WHERE k.writer = w.writer) AS signed_seq
        FROM auditrun.chain_writers() AS w (writer)
        LEFT JOIN auditrun.writers AS h ON h.writer = w.writer
        LEFT JOIN LATERAL (
            SELECT c.seq, c.row_hash, c.row_id FROM auditrun.chain AS c
            WHERE c.writer = w.writer ORDER BY c.seq DESC LIMIT 1) AS c ON true
        LEFT JOIN LATERAL (
            SELECT l.last_seq, l.last_hash FROM links AS l
            WHERE l.writer = w.writer AND l.first_seq > COALESCE(c.seq, 0) AND l.first_seq <= h.seq
            ORDER BY l.last_seq DESC LIMIT 1) AS l ON true
        WHERE only_writer IS NULL OR w.writer = only_writer
    ), judged AS (
        SELECT e.*, CASE
            WHEN e.seq < e.head_seq OR e.hash <> e.head_hash THEN 'head_differs'
            WHEN e.seq < e.signed_seq THEN 'checkpoint_differs'
            END AS finding
        FROM ends AS e
    )
    SELECT j.finding, j.writer,
        CASE WHEN j.seq < GREATEST(j.head_seq, j.signed_seq) THEN j.seq + 1 ELSE j.seq END,
        CASE WHEN j.seq >= GREATEST(j.head_seq, j.signed_seq) THEN j.row_id END
    FROM judged AS j WHERE j.finding IS NOT NULL
    ORDER BY j.writer LIMIT 1
$$;

CREATE FUNCTION auditrun.verify(only_writer uuid DEFAULT NULL)
    RETURNS TABLE (finding text, writer uuid, seq bigint, row_id uuid, rows bigint, writers bigint)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    of_end record;
BEGIN
    SELECT count(*) INTO writers FROM auditrun.chain_writers() AS w (of)
    WHERE only_writer IS NULL OR w.of = only_writer;
    SELECT r.finding, r.writer, r.seq, r.row_id, r.rows INTO finding, writer, seq, row_id, rows
    FROM auditrun.verify_rows(only_writer) AS r;
    SELECT e.* INTO of_end FROM auditrun.verify_ends(only_writer) AS e;
    IF of_end.writer < writer OR (writer IS NULL AND of_end.writer IS NOT NULL) THEN
        finding := of_end.finding;
        writer := of_end.writer;
        seq := of_end.seq;
        row_id := of_end.row_id;
        rows := NULL;
    END IF;
    IF rows IS NULL THEN
        SELECT count(*) INTO rows FROM auditrun.chain AS c
        WHERE (only_writer IS NULL OR c.writer = only_writer)
            AND (of_end.writer IS NULL OR c.writer <= of_end.writer);
    END IF;
    finding := COALESCE(finding, 'ok');
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION auditrun.verify(uuid) IS
    'The first bad row of the ledger, or of one writer''s chain, and what is wrong with it; rows: how '
    'many before it are right';
