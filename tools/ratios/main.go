// Command ratios runs benchmarks several times and prints, as a Markdown table, how
// they stand to their baselines:
//
//	ratios -rounds 10 -o bench.txt ./x.test -test.run '^$' -test.bench Gate
//
// Each round runs the command once and so every benchmark once: what else the machine
// does then hits all alike, which -count, that runs each benchmark so often before it
// turns to the next, does not give. What the command prints is added to the file as it
// stands, for benchstat; a round's own disturbances show there.
//
// Benchmarks whose names differ only behind the last slash are a group; the first that
// ran is the group's baseline. A figure is the median of the rounds; a ratio is the
// median of the ratios within each round.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
)

func main() {
	rounds := flag.Int("rounds", 10, "run the command so `often`")
	raw := flag.String("o", "", "add what the command prints to `file`")
	flag.Parse()
	if err := run(*rounds, *raw, flag.Args(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "ratios:", err)
		os.Exit(1)
	}
}

func run(rounds int, raw string, command []string, out io.Writer) error {
	if len(command) == 0 || rounds < 1 || raw == "" {
		return errors.New("want at least one round, a file (-o), and a command")
	}
	file, err := os.OpenFile(raw, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	var t table
	for round := range rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, rounds)
		printed, err := output(command)
		if _, err := file.Write(printed); err != nil {
			return err
		}
		if err != nil {
			return fmt.Errorf("round %d: %w", round+1, err)
		}
		results, err := parse(bytes.NewReader(printed))
		if err != nil {
			return fmt.Errorf("round %d: %w", round+1, err)
		}
		t.add(results)
	}
	if err := t.print(out); err != nil {
		return err
	}
	return file.Close()
}

// output is what the command prints, also when it fails: the reason stands in it.
func output(command []string) ([]byte, error) {
	cmd := exec.CommandContext(context.Background(), command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	printed, err := cmd.Output()
	if err != nil {
		os.Stderr.Write(printed)
		return printed, fmt.Errorf("%s: %w", command[0], err)
	}
	return printed, nil
}
