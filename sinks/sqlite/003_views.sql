-- For people, with the names that PostgreSQL's have. Times of day are UTC, as everywhere.

CREATE VIEW run_list AS
    SELECT r.run_id, r.received_at, r.company, r.actor, r.purpose, r.client_name, r.language,
        r.code_sha256, r.provider, r.status, r.reason, r.exit_code,
        json_extract(r.usage, '$.wall_us') / 1000.0 AS ran_ms,
        (json_extract(r.usage, '$.user_us') + json_extract(r.usage, '$.system_us')) / 1000.0
            AS cpu_ms,
        json_extract(r.usage, '$.memory_peak_bytes') AS memory_peak_bytes,
        json_array_length(r.denials) AS denials, r.trace_id, r.recorded_at, r.late, r.writer, r.seq,
        r.row_hash
    FROM runs AS r;

-- One line a demand that the executor's envelope did not cover: what was asked and what was offered.
CREATE VIEW denials AS
    SELECT r.run_id, r.received_at, r.company, r.actor, r.purpose, r.provider, r.envelope_sha256,
        r.status, r.reason, json_extract(d.value, '$.demand') AS demand,
        json_extract(d.value, '$.requested') AS requested,
        json_extract(d.value, '$.offered') AS offered
    FROM runs AS r, json_each(r.denials) AS d
    WHERE r.status <> 'succeeded';

-- How often a code ran, by company: ... WHERE code_sha256 = '2c26...' uses the index.
CREATE VIEW runs_by_code AS
    SELECT r.code_sha256, r.company, r.language, count(*) AS runs,
        count(*) FILTER (WHERE r.status = 'succeeded') AS succeeded,
        count(DISTINCT r.actor) AS actors, min(r.received_at) AS first_at,
        max(r.received_at) AS last_at
    FROM runs AS r GROUP BY r.code_sha256, r.company, r.language;

CREATE VIEW usage_by_company_day AS
    SELECT r.company, substr(r.received_at, 1, 10) AS day, count(*) AS runs,
        count(*) FILTER (WHERE r.status = 'succeeded') AS succeeded,
        count(*) FILTER (WHERE r.status IN ('capability_denied', 'unauthorized', 'disabled'))
            AS denied,
        count(*) FILTER (WHERE r.status IN ('refused', 'provider_failed', 'interrupted'))
            AS not_served,
        count(DISTINCT r.actor) AS actors,
        sum(json_extract(r.usage, '$.wall_us')) / 1000.0 AS wall_ms,
        (sum(json_extract(r.usage, '$.user_us')) + sum(json_extract(r.usage, '$.system_us'))) / 1000.0
            AS cpu_ms,
        max(json_extract(r.usage, '$.memory_peak_bytes')) AS memory_peak_bytes,
        sum(json_extract(r.usage, '$.output_bytes')) AS output_bytes
    FROM runs AS r GROUP BY r.company, substr(r.received_at, 1, 10);

-- Runs whose callers were told audit_failure, or that a restart interrupted: recorded afterwards.
CREATE VIEW late_records AS
    SELECT r.run_id, r.company, r.actor, r.status, r.reason, r.finished_at, r.recorded_at,
        round((julianday(r.recorded_at) - julianday(r.finished_at)) * 86400000.0) AS late_by_ms,
        r.writer, r.seq
    FROM runs AS r WHERE r.late;

-- When each daemon ran: stopped_at is null while it does, and where it was not orderly it is the last
-- that is known of it.
CREATE VIEW daemon_times AS
    SELECT s.writer, s.happened_at AS started_at,
        CASE s.next_kind
            WHEN 'stopped' THEN s.next_at
            WHEN 'started' THEN (
                SELECT max(x.at) FROM (
                    SELECT e.happened_at AS at FROM events AS e
                    WHERE e.writer = s.writer AND e.seq >= s.seq AND e.seq < s.next_seq
                    UNION ALL
                    SELECT r.finished_at FROM runs AS r
                    WHERE r.writer = s.writer AND r.seq > s.seq AND r.seq < s.next_seq
                        AND NOT r.late) AS x)
            END AS stopped_at,
        s.next_kind IS NOT 'started' AS orderly
    FROM (SELECT e.writer, e.seq, e.kind, e.happened_at, lead(e.kind) OVER w AS next_kind,
              lead(e.happened_at) OVER w AS next_at, lead(e.seq) OVER w AS next_seq
          FROM events AS e WHERE e.kind IN ('started', 'stopped')
          WINDOW w AS (PARTITION BY e.writer ORDER BY e.seq)) AS s
    WHERE s.kind = 'started';

-- What the chains do not tell: gap (the ledger lost rows that were acknowledged), clock_stepped,
-- partition_retired, off (between a stop and the next start), crashed (a start without a stop before).
CREATE VIEW gaps AS
    SELECT e.writer, e.kind AS what, e.happened_at AS from_at, e.happened_at AS until_at, e.detail
    FROM events AS e WHERE e.kind IN ('gap', 'clock_stepped', 'partition_retired')
    UNION ALL
    SELECT t.writer, CASE WHEN t.orderly THEN 'off' ELSE 'crashed' END, t.stopped_at,
        lead(t.started_at) OVER (PARTITION BY t.writer ORDER BY t.started_at), NULL
    FROM daemon_times AS t WHERE t.stopped_at IS NOT NULL;
