-- What refuses a change, whoever makes it.
--
-- INSERT OR REPLACE deletes without asking the triggers for DELETE (unless recursive_triggers is on),
-- so an insert over a row that is there has triggers of its own.

CREATE TRIGGER runs_refuse_update BEFORE UPDATE ON runs
BEGIN
    SELECT RAISE(ABORT, 'auditrun: UPDATE of runs is refused, the ledger is append-only');
END;
CREATE TRIGGER runs_refuse_delete BEFORE DELETE ON runs
BEGIN
    SELECT RAISE(ABORT, 'auditrun: DELETE of runs is refused, the ledger is append-only');
END;
CREATE TRIGGER runs_refuse_replace BEFORE INSERT ON runs
    WHEN EXISTS (SELECT 1 FROM runs WHERE run_id = NEW.run_id)
        OR EXISTS (SELECT 1 FROM runs WHERE writer = NEW.writer AND seq = NEW.seq)
BEGIN
    SELECT RAISE(ABORT, 'auditrun: the row is there already');
END;

CREATE TRIGGER events_refuse_update BEFORE UPDATE ON events
BEGIN
    SELECT RAISE(ABORT, 'auditrun: UPDATE of events is refused, the ledger is append-only');
END;
CREATE TRIGGER events_refuse_delete BEFORE DELETE ON events
BEGIN
    SELECT RAISE(ABORT, 'auditrun: DELETE of events is refused, the ledger is append-only');
END;
CREATE TRIGGER events_refuse_replace BEFORE INSERT ON events
    WHEN EXISTS (SELECT 1 FROM events WHERE event_id = NEW.event_id)
        OR EXISTS (SELECT 1 FROM events WHERE writer = NEW.writer AND seq = NEW.seq)
BEGIN
    SELECT RAISE(ABORT, 'auditrun: the row is there already');
END;

-- Writing the same head again is allowed: it is how a daemon asks whether everything up to that head
-- is stored.
CREATE TRIGGER writers_refuse_step_back BEFORE UPDATE ON writers
    WHEN NEW.writer <> OLD.writer OR NEW.seq < OLD.seq
        OR (NEW.seq = OLD.seq AND NEW.hash <> OLD.hash)
BEGIN
    SELECT RAISE(ABORT, 'auditrun: the head of a chain only moves forward');
END;
CREATE TRIGGER writers_refuse_delete BEFORE DELETE ON writers
BEGIN
    SELECT RAISE(ABORT, 'auditrun: DELETE of writers is refused, the ledger is append-only');
END;
CREATE TRIGGER writers_refuse_replace BEFORE INSERT ON writers
    WHEN EXISTS (SELECT 1 FROM writers WHERE writer = NEW.writer)
BEGIN
    SELECT RAISE(IGNORE);
END;

CREATE TRIGGER keys_refuse_update BEFORE UPDATE ON keys
BEGIN
    SELECT RAISE(ABORT, 'auditrun: UPDATE of keys is refused, the ledger is append-only');
END;
CREATE TRIGGER keys_refuse_delete BEFORE DELETE ON keys
BEGIN
    SELECT RAISE(ABORT, 'auditrun: DELETE of keys is refused, the ledger is append-only');
END;
CREATE TRIGGER keys_refuse_replace BEFORE INSERT ON keys
    WHEN EXISTS (SELECT 1 FROM keys WHERE company = NEW.company AND idempotency_key = NEW.idempotency_key)
BEGIN
    SELECT RAISE(IGNORE);
END;

CREATE TRIGGER checkpoint_keys_refuse_update BEFORE UPDATE ON checkpoint_keys
BEGIN
    SELECT RAISE(ABORT, 'auditrun: UPDATE of checkpoint_keys is refused, the ledger is append-only');
END;
CREATE TRIGGER checkpoint_keys_refuse_delete BEFORE DELETE ON checkpoint_keys
BEGIN
    SELECT RAISE(ABORT, 'auditrun: DELETE of checkpoint_keys is refused, the ledger is append-only');
END;
CREATE TRIGGER checkpoint_keys_refuse_replace BEFORE INSERT ON checkpoint_keys
    WHEN EXISTS (SELECT 1 FROM checkpoint_keys WHERE key_id = NEW.key_id)
BEGIN
    SELECT RAISE(IGNORE);
END;

CREATE TRIGGER checkpoints_refuse_update BEFORE UPDATE ON checkpoints
BEGIN
    SELECT RAISE(ABORT, 'auditrun: UPDATE of checkpoints is refused, the ledger is append-only');
END;
CREATE TRIGGER checkpoints_refuse_delete BEFORE DELETE ON checkpoints
BEGIN
    SELECT RAISE(ABORT, 'auditrun: DELETE of checkpoints is refused, the ledger is append-only');
END;
CREATE TRIGGER checkpoints_refuse_replace BEFORE INSERT ON checkpoints
    WHEN EXISTS (SELECT 1 FROM checkpoints WHERE writer = NEW.writer AND seq = NEW.seq AND key_id = NEW.key_id)
BEGIN
    SELECT RAISE(IGNORE);
END;

CREATE TRIGGER migrations_refuse_update BEFORE UPDATE ON migrations
BEGIN
    SELECT RAISE(ABORT, 'auditrun: UPDATE of migrations is refused, the ledger is append-only');
END;
CREATE TRIGGER migrations_refuse_delete BEFORE DELETE ON migrations
BEGIN
    SELECT RAISE(ABORT, 'auditrun: DELETE of migrations is refused, the ledger is append-only');
END;
CREATE TRIGGER migrations_refuse_replace BEFORE INSERT ON migrations
    WHEN EXISTS (SELECT 1 FROM migrations WHERE version = NEW.version)
BEGIN
    SELECT RAISE(IGNORE);
END;
