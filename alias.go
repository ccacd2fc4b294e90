package pgyield

import (
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgyield/pgyield/bulkhead"
)

// Aliases of pgxpool's types: code and libraries written for pgxpool compile
// unchanged, and their values pass between both.
type (
	Config                = pgxpool.Config
	Conn                  = pgxpool.Conn
	Tx                    = pgxpool.Tx
	Stat                  = pgxpool.Stat
	ShouldPingParams      = pgxpool.ShouldPingParams
	TraceAcquireStartData = pgxpool.TraceAcquireStartData
	TraceAcquireEndData   = pgxpool.TraceAcquireEndData
	TraceReleaseData      = pgxpool.TraceReleaseData
)

// Mode says what the gate does with reads.
type Mode = bulkhead.Mode

const (
	// Enforce holds reads to the limit. It is the default.
	Enforce = bulkhead.Enforce
	// Shadow accounts, judges and reports, but holds nothing back and charges no
	// demerit. Since its cuts relieve nothing, it shows verdicts and the first cut, not
	// what would follow.
	Shadow = bulkhead.Shadow
	// Off lets every read go at once.
	Off = bulkhead.Off
)

// RefusedError tells why a read was refused, before any SQL was sent. It matches
// [ErrRefused]. It is not safe to retry at once: wait for RetryAfter.
type RefusedError = bulkhead.RefusedError

// ErrRefused is what every refusal of a read matches with errors.Is.
var ErrRefused = bulkhead.ErrRefused
