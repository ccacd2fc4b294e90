//go:build race

package bulkhead

const raceDetector = true
