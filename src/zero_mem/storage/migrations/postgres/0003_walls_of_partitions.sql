-- The policy of a partitioned table does not hold for who names one of its partitions. So each
-- partition has one of its own, which a statement that names the whole table never meets.

-- Every transaction begins at the counters: whoever is in one ends it before, nobody else begins.
LOCK TABLE {schema}.counter IN ACCESS EXCLUSIVE MODE;

DO $wall$
DECLARE
    part regclass;
BEGIN
    FOR part IN
        SELECT i.inhrelid::regclass FROM pg_inherits i
        JOIN pg_class p ON p.oid = i.inhparent
        WHERE p.relnamespace = '{schema}'::regnamespace AND p.relkind = 'p'
    LOOP
        EXECUTE format(
            'CREATE POLICY wall ON %s USING (namespace = (SELECT {schema}.here()))', part
        );
        EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', part);
        EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', part);
    END LOOP;
END
$wall$;
