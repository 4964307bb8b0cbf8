-- The ledger for people: digests as hex, durations in milliseconds, days in UTC. Whoever reads a view
-- sees in it what the policies of auditrun.runs let him see. docs/ledger.md has questions and answers.

CREATE VIEW auditrun.run_list AS
    SELECT r.run_id, r.received_at, r.company, r.actor, r.purpose, r.client_name, r.language,
        encode(r.code_sha256, 'hex') AS code_sha256, r.provider, r.status, r.reason, r.exit_code,
        round(extract(epoch FROM r.started_at - r.received_at)::numeric * 1000, 3) AS waited_ms,
        round(extract(epoch FROM r.finished_at - r.started_at)::numeric * 1000, 3) AS ran_ms,
        round(((r.usage ->> 'user_us')::numeric + (r.usage ->> 'system_us')::numeric) / 1000, 3)
            AS cpu_ms,
        (r.usage ->> 'memory_peak_bytes')::bigint AS memory_peak_bytes,
        json_array_length(r.denials) AS denials, r.trace_id, r.recorded_at, r.late, r.writer, r.seq,
        encode(r.row_hash, 'hex') AS row_hash
    FROM auditrun.runs AS r;
COMMENT ON VIEW auditrun.run_list IS
    'One line a run. Bound the time by run_id: WHERE run_id >= auditrun.uuid7_floor(''2026-01-31'')';

CREATE VIEW auditrun.denials AS
    SELECT r.run_id, r.received_at, r.company, r.actor, r.purpose, r.provider,
        encode(r.envelope_sha256, 'hex') AS envelope_sha256, r.status, r.reason,
        d.value ->> 'demand' AS demand, d.value -> 'requested' AS requested,
        d.value -> 'offered' AS offered
    FROM auditrun.runs AS r CROSS JOIN LATERAL json_array_elements(r.denials) AS d (value)
    WHERE r.status <> 'succeeded';
COMMENT ON VIEW auditrun.denials IS
    'One line a demand that the executor''s envelope did not cover: what was asked and what was offered';

CREATE VIEW auditrun.runs_by_code AS
    SELECT r.code_sha256 AS code, encode(r.code_sha256, 'hex') AS code_sha256, r.company, r.language,
        count(*) AS runs, count(*) FILTER (WHERE r.status = 'succeeded') AS succeeded,
        count(DISTINCT r.actor) AS actors, min(r.received_at) AS first_at,
        max(r.received_at) AS last_at
    FROM auditrun.runs AS r GROUP BY r.code_sha256, r.company, r.language;
COMMENT ON VIEW auditrun.runs_by_code IS
    'How often a code ran, by company. Look for one code by its bytes, WHERE code = ''\x...'', which '
    'uses the index';

CREATE VIEW auditrun.usage_by_company_day AS
    SELECT r.company, timezone('UTC', r.received_at)::date AS day, count(*) AS runs,
        count(*) FILTER (WHERE r.status = 'succeeded') AS succeeded,
        count(*) FILTER (WHERE r.status IN ('capability_denied', 'unauthorized', 'disabled'))
            AS denied,
        count(*) FILTER (WHERE r.status IN ('refused', 'provider_failed', 'interrupted'))
            AS not_served,
        count(DISTINCT r.actor) AS actors,
        round(sum((r.usage ->> 'wall_us')::numeric) / 1000, 3) AS wall_ms,
        round(sum((r.usage ->> 'user_us')::numeric + (r.usage ->> 'system_us')::numeric) / 1000, 3)
            AS cpu_ms,
        max((r.usage ->> 'memory_peak_bytes')::bigint) AS memory_peak_bytes,
        sum((r.usage ->> 'output_bytes')::numeric) AS output_bytes
    FROM auditrun.runs AS r GROUP BY r.company, timezone('UTC', r.received_at)::date;
COMMENT ON VIEW auditrun.usage_by_company_day IS 'Runs and what they used, by company and day';

CREATE VIEW auditrun.late_records AS
    SELECT r.run_id, r.company, r.actor, r.status, r.reason, r.finished_at, r.recorded_at,
        round(extract(epoch FROM r.recorded_at - r.finished_at)::numeric * 1000, 3) AS late_by_ms,
        r.writer, r.seq
    FROM auditrun.runs AS r WHERE r.late;
COMMENT ON VIEW auditrun.late_records IS
    'Runs whose callers were told audit_failure, or that a restart interrupted: recorded afterwards';

-- ---- one code, one actor -------------------------------------------------------------------------

CREATE FUNCTION auditrun.who_ran(code_sha256 text) RETURNS SETOF auditrun.run_list
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT l.* FROM auditrun.run_list AS l
    WHERE l.run_id IN (SELECT r.run_id FROM auditrun.runs AS r
                       WHERE r.code_sha256 = decode(who_ran.code_sha256, 'hex'))
    ORDER BY l.run_id
$$;
COMMENT ON FUNCTION auditrun.who_ran(text) IS 'The runs of the code with this SHA-256 (hex)';

-- An id is made when the request comes, so the two times differ by moments only; the margin is for
-- clocks that were set back.
CREATE FUNCTION auditrun.actor_day(actor text, day date) RETURNS SETOF auditrun.run_list
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT l.* FROM auditrun.run_list AS l
    WHERE l.actor = actor_day.actor
        AND l.received_at >= timezone('UTC', day::timestamp)
        AND l.received_at < timezone('UTC', day + interval '1 day')
        AND l.run_id >= auditrun.uuid7_floor(timezone('UTC', day - interval '1 day'))
        AND l.run_id < auditrun.uuid7_floor(timezone('UTC', day + interval '2 days'))
    ORDER BY l.run_id
$$;
COMMENT ON FUNCTION auditrun.actor_day(text, date) IS
    'All that one actor had run on one day (UTC), in order';

-- ---- when nothing was recorded -------------------------------------------------------------------

-- From each start of a daemon to its stop; to the next start of the same writer, or its last row
-- before that, where it did not come to a stop; open where it seems to run still.
CREATE VIEW auditrun.daemon_times AS
    SELECT s.writer, s.happened_at AS started_at,
        CASE WHEN s.next_kind = 'stopped' THEN s.next_at
             WHEN s.next_kind = 'started' THEN last.at END AS stopped_at,
        s.next_kind IS DISTINCT FROM 'started' AS orderly
    FROM (SELECT e.writer, e.seq, e.kind, e.happened_at,
              lead(e.kind) OVER w AS next_kind, lead(e.happened_at) OVER w AS next_at,
              lead(e.seq) OVER w AS next_seq
          FROM auditrun.events AS e WHERE e.kind IN ('started', 'stopped')
          WINDOW w AS (PARTITION BY e.writer ORDER BY e.seq)) AS s
    LEFT JOIN LATERAL (
        SELECT max(x.at) AS at FROM (
            SELECT e.happened_at AS at FROM auditrun.events AS e
            WHERE e.writer = s.writer AND e.seq >= s.seq AND e.seq < s.next_seq
            UNION ALL
            (SELECT r.finished_at FROM auditrun.runs AS r
             WHERE r.writer = s.writer AND r.seq > s.seq AND r.seq < s.next_seq AND NOT r.late
             ORDER BY r.seq DESC LIMIT 1)) AS x) AS last ON s.next_kind = 'started'
    WHERE s.kind = 'started';
COMMENT ON VIEW auditrun.daemon_times IS
    'When each daemon ran: stopped_at is null while it does, and where it was not orderly it is the '
    'last that is known of it';

CREATE VIEW auditrun.gaps AS
    SELECT e.writer, e.kind::text AS what, e.happened_at AS from_at, e.happened_at AS until_at,
        e.detail
    FROM auditrun.events AS e WHERE e.kind IN ('gap', 'clock_stepped', 'partition_retired')
    UNION ALL
    SELECT t.writer, CASE WHEN t.orderly THEN 'off' ELSE 'crashed' END, t.stopped_at,
        lead(t.started_at) OVER (PARTITION BY t.writer ORDER BY t.started_at), NULL
    FROM auditrun.daemon_times AS t WHERE t.stopped_at IS NOT NULL;
COMMENT ON VIEW auditrun.gaps IS
    'What the chains do not tell: gap (the ledger lost rows that were acknowledged), clock_stepped, '
    'partition_retired, off (between a stop and the next start), crashed (a start without a stop before)';

CREATE VIEW auditrun.quiet_hours AS
    SELECT h.hour, count(t.writer) AS daemons,
        CASE WHEN count(t.writer) > 0 THEN 'quiet' ELSE 'off' END AS state
    FROM (SELECT date_trunc('hour', timezone('UTC', min(t.started_at))) AS first
          FROM auditrun.daemon_times AS t) AS since
    CROSS JOIN LATERAL generate_series(since.first,
        date_trunc('hour', timezone('UTC', now())) - interval '1 hour', interval '1 hour')
        AS g (at)
    CROSS JOIN LATERAL (SELECT timezone('UTC', g.at) AS hour) AS h
    LEFT JOIN auditrun.daemon_times AS t
        ON t.started_at < h.hour + interval '1 hour'
            AND (t.stopped_at IS NULL OR t.stopped_at >= h.hour)
    WHERE NOT EXISTS (
        SELECT FROM auditrun.runs AS r
        WHERE r.run_id >= auditrun.uuid7_floor(h.hour)
            AND r.run_id < auditrun.uuid7_floor(h.hour + interval '1 hour'))
    GROUP BY h.hour;
COMMENT ON VIEW auditrun.quiet_hours IS
    'Hours (UTC) without a run: quiet when a daemon ran and nobody asked, off when none ran';
