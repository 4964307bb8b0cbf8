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
-- Names are qualified and these functions have no settings of their own, so that they can be inlined.

CREATE FUNCTION auditrun.uuid7_floor(at timestamptz) RETURNS uuid
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT pg_catalog.rpad(pg_catalog.lpad(pg_catalog.to_hex(LEAST(GREATEST(
        pg_catalog.round(pg_catalog.date_part('epoch',
            pg_catalog.date_trunc('milliseconds', pg_catalog.timezone('UTC', $1)))
            OPERATOR(pg_catalog.*) 1000::pg_catalog.float8),
        0::pg_catalog.float8), 281474976710655::pg_catalog.float8)::pg_catalog.int8),
        12, '0'), 32, '0')::pg_catalog.uuid
$$;
COMMENT ON FUNCTION auditrun.uuid7_floor(timestamptz) IS
    'The lowest id of that millisecond: WHERE run_id >= auditrun.uuid7_floor(''2026-01-31'')';

CREATE FUNCTION auditrun.uuid7_ms(id uuid) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT ('x0000' OPERATOR(pg_catalog.||) pg_catalog.substr($1::pg_catalog.text, 1, 8)
        OPERATOR(pg_catalog.||) pg_catalog.substr($1::pg_catalog.text, 10, 4))
        ::pg_catalog.bit(64)::pg_catalog.int8
$$;
COMMENT ON FUNCTION auditrun.uuid7_ms(uuid) IS 'Milliseconds since 1970 of an id';

-- In whole seconds and a rest, each exact where one product of doubles would not be.
CREATE FUNCTION auditrun.uuid7_time(id uuid) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT pg_catalog.timezone('UTC', pg_catalog.timestamp '1970-01-01'
        OPERATOR(pg_catalog.+) (pg_catalog.interval '1 second' OPERATOR(pg_catalog.*)
            (auditrun.uuid7_ms($1) OPERATOR(pg_catalog./) 1000::pg_catalog.int8))
        OPERATOR(pg_catalog.+) (pg_catalog.interval '1 millisecond' OPERATOR(pg_catalog.*)
            (auditrun.uuid7_ms($1) OPERATOR(pg_catalog.%) 1000::pg_catalog.int8)))
$$;
COMMENT ON FUNCTION auditrun.uuid7_time(uuid) IS 'The time that is in an id';

CREATE FUNCTION auditrun.partition_start(at timestamptz, width text) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT pg_catalog.timezone('UTC', pg_catalog.date_trunc($2, pg_catalog.timezone('UTC', $1)))
$$;
COMMENT ON FUNCTION auditrun.partition_start(timestamptz, text) IS
    'When the day, week or month began, in UTC';

-- ---- what is there -------------------------------------------------------------------------------

CREATE TABLE auditrun.runs_default PARTITION OF auditrun.runs DEFAULT;
COMMENT ON TABLE auditrun.runs_default IS 'Rows whose partition was not there';

-- Bounds come from the catalog, so that a partition is what the server says that it is.
CREATE FUNCTION auditrun.partitions()
    RETURNS TABLE (partition text, from_id uuid, until_id uuid, from_time timestamptz,
                   until_time timestamptz)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT p.name, p.bounds[1]::uuid, p.bounds[2]::uuid,
        auditrun.uuid7_time(p.bounds[1]::uuid), auditrun.uuid7_time(p.bounds[2]::uuid)
    FROM (SELECT c.relname::text AS name,
              regexp_match(pg_get_expr(c.relpartbound, c.oid),
                           'FROM [(]''(.{36})''[)] TO [(]''(.{36})''[)]') AS bounds
          FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
          WHERE i.inhparent = 'auditrun.runs'::regclass) AS p
    ORDER BY p.bounds[1]::uuid NULLS LAST
$$;
COMMENT ON FUNCTION auditrun.partitions() IS
    'The partitions of runs in the order of time, the default one (without times) last';

-- ---- making them ---------------------------------------------------------------------------------

-- One partition, from the end of what is there already. False when rows of that time are in
-- runs_default, or nothing is left to make. It is made as a table by itself and attached, which
-- stops neither readers nor appends, as CREATE TABLE ... PARTITION OF would.
CREATE FUNCTION auditrun.make_partition(from_time timestamptz, until_time timestamptz)
    RETURNS boolean
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s' AS $$
DECLARE
    first  uuid := auditrun.uuid7_floor(from_time);
    beyond uuid := auditrun.uuid7_floor(until_time);
    name   text;
BEGIN
    first := greatest(first, (
        SELECT p.until_id FROM auditrun.partitions() AS p
        WHERE p.from_id < beyond AND p.until_id > first ORDER BY p.until_id DESC LIMIT 1));
    name := 'runs_' || to_char(timezone('UTC', auditrun.uuid7_time(first)), 'YYYYMMDD');
    IF first >= beyond OR to_regclass(format('auditrun.%I', name)) IS NOT NULL OR EXISTS (
        SELECT FROM auditrun.runs_default AS r WHERE r.run_id >= first AND r.run_id < beyond)
    THEN
        RETURN false;
    END IF;
    EXECUTE format('CREATE TABLE auditrun.%I (LIKE auditrun.runs INCLUDING CONSTRAINTS)', name);
    PERFORM auditrun.guard(format('auditrun.%I', name)::regclass, 'UPDATE OR DELETE OR TRUNCATE');
    EXECUTE format('ALTER TABLE auditrun.runs ATTACH PARTITION auditrun.%I '
                   'FOR VALUES FROM (%L) TO (%L)', name, first, beyond);
    RETURN true;
EXCEPTION WHEN check_violation THEN
    RETURN false; -- a row of that time came to runs_default just now
END
$$;

-- Cheap when nothing is to be made: it looks before it locks. It may be called at any time by any
-- number of clients. A lock that it does not get in time (somebody reads runs_default for long) is
-- an error, and the next call's work.
CREATE FUNCTION auditrun.make_partitions(
        ahead interval DEFAULT NULL, since timestamptz DEFAULT now())
    RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET lock_timeout = '60s' AS $$
DECLARE
    most  CONSTANT integer := 500;
    width text := (SELECT s.partition_width FROM auditrun.settings AS s);
    step  interval := ('1 ' || width)::interval;
    start timestamptz := auditrun.partition_start(since, width);
    stop  timestamptz := since + COALESCE(ahead, 4 * step);
    made  integer := 0;
    held  boolean := false;
BEGIN
    IF start < timestamptz '1969-01-01Z' OR stop >= timestamptz '9999-01-01Z' THEN
        RAISE EXCEPTION 'auditrun: partitions are for the years 1970 to 9998'
            USING ERRCODE = 'datetime_field_overflow';
    ELSIF stop > start + most * step THEN
        RAISE EXCEPTION 'auditrun: these would be more than % partitions', most
            USING ERRCODE = 'program_limit_exceeded';
    END IF;
    FOR start IN
        SELECT g.at FROM generate_series(start, stop, step) AS g (at)
        WHERE NOT EXISTS (SELECT FROM auditrun.partitions() AS p
                          WHERE p.from_id < auditrun.uuid7_floor(g.at + step)
                              AND p.until_id >= auditrun.uuid7_floor(g.at + step))
        ORDER BY g.at
    LOOP
        IF NOT held THEN
            PERFORM pg_advisory_xact_lock(7021735521340142690);
            held := true;
        END IF;
        IF auditrun.make_partition(start, start + step) THEN
            made := made + 1;
        END IF;
    END LOOP;
    RETURN made;
END
$$;
COMMENT ON FUNCTION auditrun.make_partitions(interval, timestamptz) IS
    'Makes the partitions from a time on (now) and so far ahead (four of them) that are missing, and '
    'returns how many it made';
