//go:build race

package intent

// raceEnabled says that times mean nothing.
const raceEnabled = true
