-- Guards over the guards: what the ledger is made of is written down, so that a trigger that was
-- disabled or a function that was replaced shows, and event triggers refuse such a change at once.
--
-- They are in a schema of their own, which does not go to auditrun_owner: so that the owner, and who
-- drops the schema auditrun or what the owner has, cannot take them away in passing.
--
-- Event triggers need a superuser, both to be made and to be taken away. Refused with them, to the
-- owner and to superusers alike: to drop anything in the schema auditrun but indexes, or the schema;
-- to alter or replace columns, triggers, functions, policies, views; to detach a partition; and to
-- drop one, except in a transaction that has written the event partition_retired for it.
--
-- What a superuser can still do: disable or drop the event triggers (which is how
-- `auditrun ledger migrate` makes room for itself) or their schema, switch them off (event_triggers,
-- from PostgreSQL 17 on), write to the catalogs, or change the files under the server. None of that
-- can be refused from inside. It shows in the hashes, and in checkpoints that are kept elsewhere. Who
-- has changed something for a good reason says so with SELECT auditrun_guard.seal_structure().

CREATE SCHEMA auditrun_guard;
COMMENT ON SCHEMA auditrun_guard IS 'Watches over the structure of the schema auditrun';
-- Whoever changes a table of his own in this database asks these event triggers, too.
GRANT USAGE ON SCHEMA auditrun_guard TO PUBLIC;

CREATE TABLE auditrun_guard.seals (
    seal   integer NOT NULL,
    object text    NOT NULL,
    form   text    NOT NULL,

    CONSTRAINT seals_pkey PRIMARY KEY (seal, object)
);
COMMENT ON TABLE auditrun_guard.seals IS
    'What the ledger was made of after each migration; the highest seal counts';
GRANT SELECT ON auditrun_guard.seals TO PUBLIC;
SELECT auditrun.guard('auditrun_guard.seals', 'UPDATE OR DELETE OR TRUNCATE');

-- Names and flags of the catalogs only. Texts that a server of another version could print
-- differently have no place here.
CREATE FUNCTION auditrun_guard.structure() RETURNS TABLE (object text, form text)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH tables AS (
        SELECT c.oid, format('%s.%s', n.nspname, c.relname) AS name, c.relkind, c.relrowsecurity,
            c.relforcerowsecurity, c.relispartition
        FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname IN ('auditrun', 'auditrun_guard') AND c.relkind IN ('r', 'p')
            AND c.relname !~ '^runs_[0-9]{8}$'
    )
    SELECT format('table %s', t.name),
        concat_ws(' ', t.relkind, t.relrowsecurity, t.relforcerowsecurity, t.relispartition)
    FROM tables AS t
    UNION ALL
    SELECT format('column %s.%s', t.name, a.attname),
        concat_ws(' ', format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attnum)
    FROM tables AS t JOIN pg_attribute AS a ON a.attrelid = t.oid
    WHERE a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT format('constraint %s on %s', k.conname, t.name), concat_ws(' ', k.contype, k.convalidated)
    FROM tables AS t JOIN pg_constraint AS k ON k.conrelid = t.oid
    WHERE k.contype IN ('p', 'u', 'f', 'c')
    UNION ALL
    SELECT format('trigger %s on %s', g.tgname, t.name),
        concat_ws(' ', g.tgfoid::regproc, g.tgtype, g.tgenabled, g.tgqual IS NULL)
    FROM tables AS t JOIN pg_trigger AS g ON g.tgrelid = t.oid WHERE NOT g.tgisinternal
    UNION ALL
    SELECT format('policy %s on %s', p.polname, t.name),
        concat_ws(' ', p.polcmd, p.polpermissive, p.polroles)
    FROM tables AS t JOIN pg_policy AS p ON p.polrelid = t.oid
    UNION ALL
    SELECT format('rule %s on %s', u.rulename, t.name), u.ev_type::text
    FROM tables AS t JOIN pg_rewrite AS u ON u.ev_class = t.oid
    UNION ALL
    SELECT format('function %s.%s(%s)', n.nspname, p.proname, oidvectortypes(p.proargtypes)),
        encode(sha256(convert_to(
            concat_ws(' ', p.prosecdef, p.provolatile, p.proconfig, p.prosrc), 'UTF8')), 'hex')
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
    WHERE n.nspname IN ('auditrun', 'auditrun_guard')
$$;

CREATE FUNCTION auditrun_guard.seal_structure() RETURNS void
    LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO auditrun_guard.seals (seal, object, form)
    SELECT (SELECT COALESCE(max(seal), 0) + 1 FROM auditrun_guard.seals), s.object, s.form
    FROM auditrun_guard.structure() AS s
$$;

-- One line a difference; none means that everything is as it was made.
CREATE FUNCTION auditrun_guard.structure_changes() RETURNS SETOF text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT COALESCE(was.object, now.object)
        || CASE WHEN now.object IS NULL THEN ' is gone'
                WHEN was.object IS NULL THEN ' is new' ELSE ' was changed' END
    FROM (SELECT s.object, s.form FROM auditrun_guard.seals AS s
          WHERE s.seal = (SELECT max(seal) FROM auditrun_guard.seals)) AS was
    FULL JOIN auditrun_guard.structure() AS now ON now.object = was.object
    WHERE now.form IS DISTINCT FROM was.form
    UNION ALL
    -- A table that is named like a partition is one, and has the guard of runs.
    SELECT format('partition %s is %s', c.relname,
        CASE WHEN i.inhrelid IS NULL THEN 'detached' ELSE 'not guarded' END)
    FROM pg_class AS runs JOIN pg_class AS c ON c.relnamespace = runs.relnamespace
    LEFT JOIN pg_inherits AS i ON i.inhparent = runs.oid AND i.inhrelid = c.oid
    WHERE runs.relnamespace = 'auditrun'::regnamespace AND runs.relname = 'runs'
        AND (i.inhrelid IS NOT NULL OR (c.relkind = 'r' AND c.relname ~ '^runs_([0-9]{8}|default)$'))
        AND (i.inhrelid IS NULL OR NOT EXISTS (
            SELECT FROM pg_trigger AS g JOIN pg_trigger AS of_runs
                ON of_runs.tgrelid = runs.oid AND of_runs.tgname = g.tgname
            WHERE g.tgrelid = c.oid AND g.tgname = 'refuse_change' AND g.tgfoid = of_runs.tgfoid
                AND g.tgtype = of_runs.tgtype AND g.tgenabled = 'A' AND g.tgqual IS NULL))
$$;
COMMENT ON FUNCTION auditrun_guard.structure_changes() IS
    'What the ledger is made of and was not, or the other way round, since the last migration';

-- ---- event triggers ------------------------------------------------------------------------------

-- By the server's name of an object: auditrun.runs, refuse_change on auditrun.runs, auditrun.
CREATE FUNCTION auditrun_guard.is_ours(object_identity text) RETURNS boolean
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT object_identity ~ '(^| on |[(])auditrun(_guard)?($|[.])'
$$;

CREATE FUNCTION auditrun_guard.commands() RETURNS TABLE (object_type text, object_identity text)
    LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    SELECT c.object_type, c.object_identity FROM pg_event_trigger_ddl_commands() AS c
    WHERE auditrun_guard.is_ours(c.object_identity)
$$;

-- Every command on what is ours is judged by what it leaves. What an ALTER moved out of the schema is
-- not ours any more, so after the others it is asked whether anything is gone.
CREATE FUNCTION auditrun_guard.refuse_ddl() RETURNS event_trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    change text;
BEGIN
    IF to_regnamespace('auditrun') IS NULL OR to_regnamespace('auditrun_guard') IS NULL THEN
        change := 'the ledger keeps its name';
    ELSIF EXISTS (SELECT FROM auditrun_guard.commands() AS c WHERE c.object_type IN (
        'policy', 'rule', 'view', 'type', 'domain', 'domain constraint'))
    THEN
        change := 'it is part of the ledger';
    ELSIF EXISTS (SELECT FROM auditrun_guard.commands()) THEN
        -- A partition in the making is not attached yet: that counts in commands on runs.
        SELECT min(s) INTO change FROM auditrun_guard.structure_changes() AS s
        WHERE s NOT LIKE 'partition % is detached' OR EXISTS (
            SELECT FROM auditrun_guard.commands() AS c WHERE c.object_identity = 'auditrun.runs');
    ELSIF TG_TAG LIKE 'ALTER %' THEN
        SELECT min(s) INTO change FROM auditrun_guard.structure_changes() AS s
        WHERE s LIKE '% is gone';
    END IF;
    IF change IS NOT NULL THEN
        RAISE EXCEPTION 'auditrun: % is refused: %', TG_TAG, change
            USING ERRCODE = 'insufficient_privilege';
    END IF;
END
$$;

-- Indexes may go: a DBA may want others, and no row depends on them. A constraint's index goes only
-- with its constraint. The event of a retirement counts when this very transaction wrote it (outside
-- of any savepoint).
CREATE FUNCTION auditrun_guard.refuse_drop() RETURNS event_trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    dropped   record;
    partition text;
BEGIN
    FOR dropped IN
        SELECT d.* FROM pg_event_trigger_dropped_objects() AS d
        WHERE (d.original OR d.normal) AND NOT d.is_temporary AND d.object_type <> 'index'
            AND auditrun_guard.is_ours(d.object_identity)
        ORDER BY d.original DESC
    LOOP
        partition := substring(dropped.object_identity from '(?:^| on )auditrun[.](runs_[0-9]{8})$');
        IF partition IS NOT NULL THEN
            CONTINUE WHEN EXISTS (
                SELECT FROM auditrun.events AS e
                WHERE e.kind = 'partition_retired' AND e.detail ->> 'partition' = partition
                    AND e.xmin = pg_current_xact_id()::xid);
        END IF;
        RAISE EXCEPTION 'auditrun: % of % is refused', TG_TAG, dropped.object_identity
            USING ERRCODE = 'insufficient_privilege';
    END LOOP;
END
$$;

CREATE FUNCTION auditrun_guard.event_triggers_missing() RETURNS SETOF text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT w.name
    FROM (VALUES ('auditrun_refuse_ddl', 'ddl_command_end', 'refuse_ddl'),
                 ('auditrun_refuse_drop', 'sql_drop', 'refuse_drop')) AS w (name, event, does)
    WHERE NOT EXISTS (
        SELECT FROM pg_event_trigger AS t JOIN pg_proc AS p ON p.oid = t.evtfoid
        WHERE t.evtname = w.name AND t.evtevent = w.event AND t.evtenabled = 'A'
            AND t.evttags IS NULL AND p.proname = w.does
            AND p.pronamespace = 'auditrun_guard'::regnamespace)
$$;

-- Makes those that are missing, when the current user is a superuser.
CREATE FUNCTION auditrun_guard.make_event_triggers() RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET client_min_messages = warning AS $$
DECLARE
    name text;
BEGIN
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        RETURN;
    END IF;
    FOR name IN SELECT auditrun_guard.event_triggers_missing() LOOP
        EXECUTE format('DROP EVENT TRIGGER IF EXISTS %I', name);
        EXECUTE format('CREATE EVENT TRIGGER %I ON %s EXECUTE FUNCTION auditrun_guard.%s()', name,
            CASE name WHEN 'auditrun_refuse_drop' THEN 'sql_drop' ELSE 'ddl_command_end' END,
            substr(name, length('auditrun_') + 1));
        EXECUTE format('ALTER EVENT TRIGGER %I ENABLE ALWAYS', name);
    END LOOP;
END
$$;

-- What a migration begins with: room for itself. The last step makes them again.
CREATE FUNCTION auditrun_guard.drop_event_triggers() RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    name text;
BEGIN
    FOR name IN SELECT t.evtname FROM pg_event_trigger AS t
                WHERE t.evtname IN ('auditrun_refuse_ddl', 'auditrun_refuse_drop') LOOP
        EXECUTE format('DROP EVENT TRIGGER %I', name);
    END LOOP;
END
$$;

-- ---- what is there and what is not ---------------------------------------------------------------

CREATE FUNCTION auditrun.status()
    RETURNS TABLE (partition_width text, partitions bigint, until_time timestamptz,
                   rows_in_default bigint, roles_missing text[], event_triggers_missing text[],
                   structure_changes text[])
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT s.partition_width,
        (SELECT count(*) FROM auditrun.partitions() AS p WHERE p.until_id IS NOT NULL),
        (SELECT max(p.until_time) FROM auditrun.partitions() AS p),
        (SELECT count(*) FROM auditrun.runs_default),
        ARRAY(SELECT auditrun.roles_missing()), ARRAY(SELECT auditrun_guard.event_triggers_missing()),
        ARRAY(SELECT auditrun_guard.structure_changes())
    FROM auditrun.settings AS s
$$;
COMMENT ON FUNCTION auditrun.status() IS
    'How far the partitions reach, how many rows are in runs_default, and what of the guards is missing';

-- The last step of every init and migrate: roles, owners, grants, seal, event triggers and the first
-- partitions, as far as the current user may make them. Harmless when all is there.
CREATE FUNCTION auditrun.complete(migrated boolean) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF migrated OR EXISTS (SELECT auditrun.roles_missing()) THEN
        PERFORM auditrun.make_roles();
        PERFORM auditrun.give_to_owner();
        PERFORM auditrun.grant_all();
    END IF;
    IF migrated THEN
        PERFORM auditrun_guard.seal_structure();
    END IF;
    PERFORM auditrun_guard.make_event_triggers();
    PERFORM auditrun.make_partitions();
END
$$;
