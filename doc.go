// Package pgyield is replaced shortly.
package pgyield
