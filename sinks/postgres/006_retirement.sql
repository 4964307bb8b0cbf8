-- How old rows go: a whole partition at a time, never anything else, and never without a trace.
--
-- A retired partition leaves one event, partition_retired, which is the first row of a new writer's
-- chain and tells which rows went, with the hashes at both ends of each range: so the chains still
-- hold together, and auditrun.verify() jumps over what is gone. A checkpoint is signed over that
-- event, so that nobody without the key can retire a partition and keep verify whole.
--
-- `auditrun ledger retire` does it: plan, event, signature, retire_partition. Idempotency keys stay.

-- What the event has to say, as RFC 8785 text. Reads the rows that would go, and refuses to plan for
-- rows that are not as they were written.
CREATE FUNCTION auditrun.retirement_plan(partition text) RETURNS json
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    bounds record;
    bad    record;
    ranges text;
    total  bigint;
BEGIN
    SELECT p.* INTO bounds FROM auditrun.partitions() AS p
    WHERE p.partition = retirement_plan.partition;
    IF NOT FOUND OR bounds.until_time IS NULL THEN
        RAISE EXCEPTION 'auditrun: % is not a partition that can be retired', partition
            USING ERRCODE = 'undefined_table';
    ELSIF bounds.until_time > now() THEN
        RAISE EXCEPTION 'auditrun: % is not over before %', partition,
            auditrun.canonical_time(bounds.until_time)
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;

    SELECT w.writer, w.seq INTO bad
    FROM (SELECT r.writer, r.seq, r.row_hash, r.prev_hash, auditrun.row_hash(r) AS computed_hash,
              lag(r.seq) OVER chain AS before_seq, lag(r.row_hash) OVER chain AS before_hash
          FROM auditrun.runs AS r
          WHERE r.run_id >= bounds.from_id AND r.run_id < bounds.until_id
          WINDOW chain AS (PARTITION BY r.writer ORDER BY r.seq)) AS w
    WHERE w.computed_hash <> w.row_hash OR w.seq = w.before_seq
        OR (w.seq = w.before_seq + 1 AND w.prev_hash <> w.before_hash)
    ORDER BY w.writer, w.seq LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'auditrun: row % of writer % is not as it was written', bad.seq, bad.writer
            USING ERRCODE = 'data_corrupted';
    END IF;

    -- Rows whose seq less their place in the writer's order is the same stand in one range.
    SELECT string_agg(format(
            '{"first_seq":%s,"last_hash":"%s","last_seq":%s,"prev_hash":"%s","writer":"%s"}',
            g.first_seq, encode(g.last_hash, 'hex'), g.last_seq, encode(g.prev_hash, 'hex'), g.writer),
            ',' ORDER BY g.writer, g.first_seq), sum(g.rows)
    INTO ranges, total
    FROM (SELECT w.writer, min(w.seq) AS first_seq, max(w.seq) AS last_seq, count(*) AS rows,
              (array_agg(w.prev_hash::bytea ORDER BY w.seq))[1] AS prev_hash,
              (array_agg(w.row_hash::bytea ORDER BY w.seq DESC))[1] AS last_hash
          FROM (SELECT r.writer, r.seq, r.prev_hash, r.row_hash,
                    r.seq - row_number() OVER (PARTITION BY r.writer ORDER BY r.seq) AS island
                FROM auditrun.runs AS r
                WHERE r.run_id >= bounds.from_id AND r.run_id < bounds.until_id) AS w
          GROUP BY w.writer, w.island) AS g;

    RETURN format('{"from":"%s","partition":"%s","ranges":[%s],"rows":%s,"until":"%s"}',
        auditrun.canonical_time(bounds.from_time), bounds.partition, ranges, COALESCE(total, 0),
        auditrun.canonical_time(bounds.until_time));
END
$$;
COMMENT ON FUNCTION auditrun.retirement_plan(text) IS
    'The detail of the event partition_retired for a partition that is over, which is not dropped yet';

-- The event must be the one of the plan, as it is under the lock; the checkpoint is over the event.
-- Appends to that partition (late rows) wait meanwhile, everything else only for the drop itself. It
-- gives up when a lock is not there in time.
CREATE FUNCTION auditrun.retire_partition(
        partition text, event auditrun.events, public_key bytea, made_at timestamptz,
        signature bytea)
    RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET lock_timeout = '10s' AS $$
DECLARE
    plan json;
BEGIN
    PERFORM pg_advisory_xact_lock(7021735521340142690); -- that of make_partitions()
    plan := auditrun.retirement_plan(partition);
    EXECUTE format('LOCK TABLE auditrun.%I IN SHARE MODE', partition);
    plan := auditrun.retirement_plan(partition);
    IF event.kind IS DISTINCT FROM 'partition_retired' OR event.seq IS DISTINCT FROM 1
        OR event.prev_hash IS DISTINCT FROM decode(repeat('00', 32), 'hex')
        OR event.detail::jsonb IS DISTINCT FROM plan::jsonb
        OR event.row_hash IS DISTINCT FROM auditrun.row_hash(event)
    THEN
        RAISE EXCEPTION 'auditrun: the event does not tell what would be retired'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    INSERT INTO auditrun.events SELECT event.*;
    INSERT INTO auditrun.writers (writer, seq, hash)
    VALUES (event.writer, event.seq, event.row_hash);
    INSERT INTO auditrun.checkpoint_keys (key_id, public_key)
    VALUES (sha256(public_key), public_key) ON CONFLICT DO NOTHING;
    INSERT INTO auditrun.checkpoints (writer, seq, row_hash, made_at, key_id, signature)
    VALUES (event.writer, event.seq, event.row_hash, made_at, sha256(public_key), signature);
    EXECUTE format('DROP TABLE auditrun.%I', partition);
    RETURN (plan ->> 'rows')::bigint;
END
$$;
COMMENT ON FUNCTION auditrun.retire_partition(text, auditrun.events, bytea, timestamptz, bytea) IS
    'Drops a partition that is over and leaves the event and its checkpoint; returns how many rows went';
