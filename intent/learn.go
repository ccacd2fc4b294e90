package intent

// VolatileFunctions is the query whose one column of names [Classifier.Learn] takes: the
// functions of a database's users that may write. Those are the functions declared
// volatile, and the aggregates over them, which are themselves always stored as
// immutable. Procedures cannot be called in a query, nor can trigger functions. Any role
// may run it, on PostgreSQL 13 and later; 2 to 3 ms for some 1,200 functions.
const VolatileFunctions = `
WITH /* pgyield */ risky AS (
	SELECT oid, proname FROM pg_catalog.pg_proc
	WHERE oid >= 16384 AND provolatile = 'v' AND prokind <> 'p'
	  AND prorettype NOT IN ('pg_catalog.trigger'::pg_catalog.regtype, 'pg_catalog.event_trigger'::pg_catalog.regtype)
)
SELECT proname::text FROM risky
UNION
SELECT p.proname::text
FROM pg_catalog.pg_aggregate a
JOIN pg_catalog.pg_proc p ON p.oid = a.aggfnoid
WHERE a.aggfnoid >= 16384 AND EXISTS (
	SELECT FROM risky WHERE risky.oid IN (
		a.aggtransfn, a.aggfinalfn, a.aggcombinefn, a.aggserialfn, a.aggdeserialfn, a.aggmtransfn, a.aggminvtransfn, a.aggmfinalfn)
)`
