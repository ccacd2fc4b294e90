//go:build !race

package sim

// raceDetector says that everything runs about ten times slower.
const raceDetector = false
