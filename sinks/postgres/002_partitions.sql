-- Partitions of auditrun.runs by time: the first 48 bits of a UUIDv7 are the milliseconds since 1970.
--
-- runs_YYYYMMDD holds the ids of one day, week (from Monday) or month, in UTC, from that day on.
-- auditrun.make_partitions() makes them ahead of need: the daemon calls it, and cron may,
--
--     psql -c 'SELECT auditrun.make_partitions()'
--
-- or pg_cron. A row whose partition is not there goes to runs_default, so that no row is ever refused
-- for its date; a partition is never made over such rows.

-- ---- ids and times -------------------------------------------------------------------------------

CREATE FUNCTION auditrun.uuid7_floor(at timestamptz) RETURNS uuid
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog AS $$
    SELECT rpad(lpad(to_hex(least(greatest(
        round(date_part('epoch', date_trunc('milliseconds', timezone('UTC', at))) * 1000),
        0), 281474976710655)::bigint), 12, '0'), 32, '0')::uuid
$$;
COMMENT ON FUNCTION auditrun.uuid7_floor(timestamptz) IS
    'The lowest id of that millisecond: WHERE run_id >= auditrun.uuid7_floor(''2026-01-31'')';

CREATE FUNCTION auditrun.uuid7_ms(id uuid) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog AS $$
    SELECT ('x' || lpad(left(replace(id::text, '-', ''), 12), 16, '0'))::bit(64)::bigint
$$;
COMMENT ON FUNCTION auditrun.uuid7_ms(uuid) IS 'Milliseconds since 1970 of an id';

-- In whole seconds and a rest, each exact where one product of doubles would not be.
CREATE FUNCTION auditrun.uuid7_time(id uuid) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog AS $$
    SELECT timezone('UTC', timestamp '1970-01-01'
        + auditrun.uuid7_ms(id) / 1000 * interval '1 second'
        + auditrun.uuid7_ms(id) % 1000 * interval '1 millisecond')
$$;
COMMENT ON FUNCTION auditrun.uuid7_time(uuid) IS 'The time that is in an id';

-- ---- where partitions begin and end --------------------------------------------------------------

CREATE FUNCTION auditrun.partition_start(at timestamptz, width text) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog AS $$
    SELECT timezone('UTC', date_trunc(width, timezone('UTC', at)))
$$;
COMMENT ON FUNCTION auditrun.partition_start(timestamptz, text) IS
    'When the day, week or month began';

CREATE FUNCTION auditrun.partition_end(at timestamptz, width text) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog AS $$
    SELECT timezone('UTC',
        date_trunc(width, timezone('UTC', at)) + ('1 ' || width)::interval)
$$;
COMMENT ON FUNCTION auditrun.partition_end(timestamptz, text) IS
    'When the day, week or month ends: the start of the next';

CREATE TABLE auditrun.runs_default PARTITION OF auditrun.runs DEFAULT;
COMMENT ON TABLE auditrun.runs_default IS 'Rows whose partition was not there';

-- Bounds come from the catalog, so that a partition is what the server says that it is.
CREATE FUNCTION auditrun.partitions()
    RETURNS TABLE (partition text, from_id uuid, until_id uuid, from_time timestamptz,
                   until_time timestamptz)
    LANGUAGE sql STABLE SET search_path = pg_catalog AS $$
    SELECT p.name, p.bounds[1]::uuid, p.bounds[2]::uuid,
        auditrun.uuid7_time(p.bounds[1]::uuid), auditrun.uuid7_time(p.bounds[2]::uuid)
    FROM (SELECT c.relname::text AS name,
              regexp_match(pg_get_expr(c.relpartbound, c.oid),
                           'FROM \(''(.{36})''\) TO \(''(.{36})''\)') AS bounds
          FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
          WHERE i.inhparent = 'auditrun.runs'::regclass) AS p
    ORDER BY p.bounds[1]::uuid NULLS LAST
$$;
COMMENT ON FUNCTION auditrun.partitions() IS
    'The partitions of runs in the order of time, the default one (without times) last';
