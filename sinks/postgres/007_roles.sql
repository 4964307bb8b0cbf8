-- Roles and grants. Nobody logs in as one of these; login roles are made members of them:
--
--     auditrun_owner     owns the schema and all in it; retires partitions
--     auditrun_writer    what a daemon needs: appends rows, moves heads, makes partitions
--     auditrun_auditor   reads everything, and verifies it
--     auditrun_reader    reads the runs of its companies, which the table readers lists:
--
--     CREATE ROLE alice LOGIN IN ROLE auditrun_reader;
--     INSERT INTO auditrun.readers VALUES ('alice', 'acme');
--
-- Roles belong to the whole server, so another ledger on it has the same ones. Whoever makes the
-- ledger has to be a superuser, or have CREATEROLE; what could not be made is told by
-- `auditrun ledger init` and `status`, and made up for by the next init.

CREATE FUNCTION auditrun.roles_missing() RETURNS SETOF text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT w.name
    FROM unnest(ARRAY['auditrun_owner', 'auditrun_writer', 'auditrun_auditor', 'auditrun_reader'])
        AS w (name)
    WHERE NOT EXISTS (SELECT FROM pg_roles AS o WHERE o.rolname = w.name)
$$;

-- Makes the roles that are missing, as far as the current user may.
CREATE FUNCTION auditrun.make_roles() RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    role text;
BEGIN
    FOR role IN SELECT auditrun.roles_missing() LOOP
        BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN', role);
        EXCEPTION
            WHEN insufficient_privilege THEN NULL;
            WHEN duplicate_object OR unique_violation THEN NULL; -- another database's init was faster
        END;
    END LOOP;
END
$$;

-- Gives all that is in the schema to auditrun_owner. Without that role, or the right to become it,
-- everything stays with whoever made it, which works as well for a single ledger of one's own.
CREATE FUNCTION auditrun.give_to_owner() RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    owner   oid := (SELECT oid FROM pg_roles WHERE rolname = 'auditrun_owner');
    command text;
BEGIN
    IF owner IS NULL THEN
        RETURN;
    END IF;
    IF NOT pg_has_role(current_user, owner, 'MEMBER') THEN
        EXECUTE format('GRANT auditrun_owner TO %I', current_user);
    END IF;
    FOR command IN
        SELECT 'SCHEMA auditrun' FROM pg_namespace AS n
        WHERE n.nspname = 'auditrun' AND n.nspowner <> owner
        UNION ALL
        SELECT format('%s %s', CASE c.relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END, c.oid::regclass)
        FROM pg_class AS c
        WHERE c.relnamespace = 'auditrun'::regnamespace AND c.relkind IN ('r', 'p', 'v')
            AND c.relowner <> owner
        UNION ALL
        SELECT format('FUNCTION %s', p.oid::regprocedure) FROM pg_proc AS p
        WHERE p.pronamespace = 'auditrun'::regnamespace AND p.proowner <> owner
        UNION ALL
        SELECT format('%s %s', CASE t.typtype WHEN 'd' THEN 'DOMAIN' ELSE 'TYPE' END, t.oid::regtype)
        FROM pg_type AS t
        WHERE t.typnamespace = 'auditrun'::regnamespace AND t.typtype IN ('d', 'e')
            AND t.typowner <> owner
    LOOP
        EXECUTE format('ALTER %s OWNER TO auditrun_owner', command);
    END LOOP;
EXCEPTION WHEN insufficient_privilege OR invalid_grant_operation THEN
    RETURN;
END
$$;

-- Who may do what, as a table: a role, and what follows GRANT.
CREATE FUNCTION auditrun.grants() RETURNS TABLE (role text, privilege text)
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    VALUES
    ('auditrun_writer', 'USAGE ON SCHEMA auditrun'),
    ('auditrun_writer', 'INSERT ON auditrun.runs, auditrun.events, auditrun.writers, auditrun.keys, '
                        'auditrun.checkpoint_keys, auditrun.checkpoints'),
    ('auditrun_writer', 'UPDATE (seq, hash) ON auditrun.writers'),
    ('auditrun_writer', 'SELECT ON auditrun.runs, auditrun.writers, auditrun.keys, '
                        'auditrun.migrations, auditrun.readers'),
    ('auditrun_writer', 'SELECT (event_id, writer, seq, row_hash) ON auditrun.events'),
    ('auditrun_writer', 'SELECT (key_id) ON auditrun.checkpoint_keys'),
    ('auditrun_writer', 'SELECT (writer, seq, key_id) ON auditrun.checkpoints'),
    ('auditrun_writer', 'EXECUTE ON FUNCTION auditrun.make_partitions, auditrun.acts_as, '
                        'auditrun.status'),

    ('auditrun_auditor', 'USAGE ON SCHEMA auditrun'),
    ('auditrun_auditor', 'SELECT ON ALL TABLES IN SCHEMA auditrun'),
    ('auditrun_auditor', 'EXECUTE ON FUNCTION auditrun.acts_as, auditrun.status, '
                         'auditrun.roles_missing, auditrun.partitions, auditrun.partition_start, '
                         'auditrun.uuid7_floor, auditrun.uuid7_ms, auditrun.uuid7_time, '
                         'auditrun.canonical_line, auditrun.canonical_time, '
                         'auditrun.canonical_hash, '
                         'auditrun.row_canonical(auditrun.runs), auditrun.row_hash(auditrun.runs), '
                         'auditrun.row_canonical(auditrun.events), '
                         'auditrun.row_hash(auditrun.events), auditrun.is_readable(timestamptz), '
                         'auditrun.is_readable(text), auditrun.is_readable(uuid), '
                         'auditrun.is_readable(auditrun.runs), '
                         'auditrun.is_readable(auditrun.events), '
                         'auditrun.retired_ranges, auditrun.retired_links, '
                         'auditrun.chain_writers, auditrun.verify_rows, auditrun.verify_ends, '
                         'auditrun.verify, auditrun.retirement_plan, '
                         'auditrun.actor_day, auditrun.who_ran'),

    ('auditrun_reader', 'USAGE ON SCHEMA auditrun'),
    ('auditrun_reader', 'SELECT ON auditrun.runs, auditrun.readers, auditrun.run_list, '
                        'auditrun.denials, auditrun.runs_by_code, auditrun.usage_by_company_day, '
                        'auditrun.late_records'),
    ('auditrun_reader', 'EXECUTE ON FUNCTION auditrun.acts_as, auditrun.uuid7_floor, '
                        'auditrun.uuid7_ms, auditrun.uuid7_time, auditrun.canonical_line, '
                        'auditrun.canonical_time, auditrun.canonical_hash, '
                        'auditrun.row_canonical(auditrun.runs), auditrun.row_hash(auditrun.runs), '
                        'auditrun.actor_day, auditrun.who_ran, auditrun.status')
$$;

CREATE FUNCTION auditrun.grant_all() RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    given record;
BEGIN
    REVOKE ALL ON ALL FUNCTIONS IN SCHEMA auditrun FROM PUBLIC;
    FOR given IN SELECT g.* FROM auditrun.grants() AS g JOIN pg_roles AS o ON o.rolname = g.role LOOP
        EXECUTE format('GRANT %s TO %I', given.privilege, given.role);
    END LOOP;
END
$$;
