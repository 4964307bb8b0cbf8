-- What refuses a change, to the owner too, and also where session_replication_role is replica.

-- ---- rows ----------------------------------------------------------------------------------------

CREATE FUNCTION auditrun.refuse_change() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    RAISE EXCEPTION 'auditrun: % of % is refused, the ledger is append-only', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'insufficient_privilege';
END
$$;

-- Writing the same head again is allowed: it is how a daemon asks, as durably as by a commit, whether
-- everything up to that head is stored.
CREATE FUNCTION auditrun.refuse_step_back() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog AS $$
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
    LANGUAGE plpgsql SET search_path = pg_catalog AS $$
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
