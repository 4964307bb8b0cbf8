-- What refuses a change, to the owner too, and also where session_replication_role is replica.

-- ---- rows ----------------------------------------------------------------------------------------

CREATE FUNCTION auditrun.refuse_change() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION 'auditrun: % of % is refused, the ledger is append-only', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'insufficient_privilege';
END
$$;

-- Writing the same head again is allowed: it is how a daemon asks, as durably as by a commit, whether
-- everything up to that head is stored.
CREATE FUNCTION auditrun.refuse_step_back() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NEW.writer <> OLD.writer OR NEW.seq < OLD.seq OR (NEW.seq = OLD.seq AND NEW.hash <> OLD.hash)
    THEN
        RAISE EXCEPTION 'auditrun: the head of a chain only moves forward'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END
$$;

-- Puts a table under guard: those of UPDATE, DELETE, TRUNCATE that are given are refused. A statement
-- that names a partition does not ask the triggers of runs, so each partition has its own.
CREATE FUNCTION auditrun.guard(guarded regclass, refused text) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format('CREATE TRIGGER refuse_change BEFORE %s ON %s FOR EACH STATEMENT '
                   'EXECUTE FUNCTION auditrun.refuse_change()', refused, guarded);
    EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER refuse_change', guarded);
END
$$;

SELECT auditrun.guard(name::regclass, refused)
FROM (VALUES ('auditrun.runs', 'UPDATE OR DELETE OR TRUNCATE'),
             ('auditrun.runs_default', 'UPDATE OR DELETE OR TRUNCATE'),
             ('auditrun.events', 'UPDATE OR DELETE OR TRUNCATE'),
             ('auditrun.keys', 'UPDATE OR DELETE OR TRUNCATE'),
             ('auditrun.checkpoint_keys', 'UPDATE OR DELETE OR TRUNCATE'),
             ('auditrun.checkpoints', 'UPDATE OR DELETE OR TRUNCATE'),
             ('auditrun.migrations', 'UPDATE OR DELETE OR TRUNCATE'),
             ('auditrun.writers', 'DELETE OR TRUNCATE'),
             ('auditrun.settings', 'DELETE OR TRUNCATE'),
             ('auditrun.readers', 'UPDATE OR TRUNCATE')) AS guarded (name, refused);

CREATE TRIGGER refuse_step_back BEFORE UPDATE ON auditrun.writers
    FOR EACH ROW EXECUTE FUNCTION auditrun.refuse_step_back();
ALTER TABLE auditrun.writers ENABLE ALWAYS TRIGGER refuse_step_back;

-- ---- who may read which rows ---------------------------------------------------------------------
-- Policies ask for current_user, which in a view is who reads the view, and they are forced upon the
-- owner of the tables: so they hold in views too, also where PostgreSQL (before 15) has no
-- security_invoker. Which tables a role may use at all is a matter of grants (007_roles.sql).

-- Is who asks the owner, or a member of one of these roles?
CREATE FUNCTION auditrun.acts_as(VARIADIC roles text[]) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (
        SELECT FROM pg_roles AS o
        WHERE (o.rolname = ANY (roles)
               OR o.oid = (SELECT relowner FROM pg_class WHERE oid = 'auditrun.runs'::regclass))
            AND pg_has_role(current_user, o.oid, 'USAGE'))
$$;

ALTER TABLE auditrun.readers ENABLE ROW LEVEL SECURITY;
ALTER TABLE auditrun.readers FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON auditrun.readers FOR SELECT
    USING (role = current_user OR (SELECT auditrun.acts_as('auditrun_auditor')));
CREATE POLICY entered ON auditrun.readers FOR INSERT WITH CHECK (true);
CREATE POLICY struck_out ON auditrun.readers FOR DELETE USING (true);

ALTER TABLE auditrun.runs ENABLE ROW LEVEL SECURITY;
ALTER TABLE auditrun.runs FORCE ROW LEVEL SECURITY;
CREATE POLICY own_companies ON auditrun.runs FOR SELECT
    USING ((SELECT auditrun.acts_as('auditrun_writer', 'auditrun_auditor'))
           OR company = ANY (ARRAY(SELECT r.company FROM auditrun.readers AS r
                                   WHERE r.role = current_user)));
CREATE POLICY appended ON auditrun.runs FOR INSERT WITH CHECK (true);
