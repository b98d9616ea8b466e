-- The inverted list holds the namespaces that are too large to be ranked as a whole, and only
-- those: `listed` says so of a namespace (in `counter`) and of each of its rows (in `lexicon`).
-- A large namespace of before is listed with its next write.
ALTER TABLE {schema}.counter ADD COLUMN listed boolean NOT NULL DEFAULT false;
ALTER TABLE {schema}.lexicon ADD COLUMN listed boolean NOT NULL DEFAULT false;
DROP INDEX {schema}.lexicon_terms;
CREATE INDEX lexicon_terms ON {schema}.lexicon USING gin (string_to_array(terms, ' '))
    WITH (gin_pending_list_limit = 512) WHERE listed;

DROP FUNCTION {schema}.append;

-- Write new records with what belongs to them; every array has one item a row.
CREATE FUNCTION {schema}.append(
    bodies bigint[], types text[], contents bytea[],
    sequences bigint[], previous bigint[], groups bigint[], moments bigint[], held bigint[],
    actors text[], operations text[], reasons text[], written text[], origins text[],
    positions bigint[], entries bigint[], updated bigint[], accessed bigint[], counts bigint[],
    expiries bigint[], facts uuid[], states text[], forms text[], kinds text[], aliases text[],
    tasks text[], sessions text[],
    indexed bigint[], lengths integer[], terms text[], long_terms text[], listed boolean
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    here integer := {schema}.here();
BEGIN
    INSERT INTO {schema}.body SELECT here, * FROM unnest(bodies, types, contents);
    INSERT INTO {schema}.journal
        (namespace, sequence, previous, "group", at, body, actor, operation, reason, fields, origin)
        SELECT here, * FROM unnest(
            sequences, previous, groups, moments, held, actors, operations, reasons, written,
            origins
        );
    IF positions <> '{{}}' THEN
        INSERT INTO {schema}.record SELECT here, * FROM unnest(
            positions, entries, updated, accessed, counts, expiries, facts, states, forms, kinds,
            aliases, tasks, sessions
        );
    END IF;
    IF indexed <> '{{}}' THEN
        INSERT INTO {schema}.lexicon
            SELECT here, *, append.listed FROM unnest(indexed, lengths, terms, long_terms);
    END IF;
END
$$;
