//go:build !race

package bulkhead

// raceDetector says that everything runs about ten times slower.
const raceDetector = false
