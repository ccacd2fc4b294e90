package bulkhead_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pgyield/pgyield/bulkhead"
)

func Example() {
	b, err := bulkhead.New(bulkhead.Options{Limit: 2, MaxWaiting: -1})
	if err != nil {
		fmt.Println(err)
		return
	}
	first, _ := b.Acquire(context.Background(), "tenant-1", 1)
	second, _ := b.Acquire(context.Background(), "tenant-2", 1)

	_, err = b.Acquire(context.Background(), "tenant-3", 1)
	var refused *bulkhead.RefusedError
	if errors.As(err, &refused) {
		fmt.Println(refused.Reason, refused.Running, "of", refused.Limit)
	}

	first.Release()
	second.Release()
	second.Release() // once is enough, more is harmless
	fmt.Println("running:", b.Stat().Running)
	// Output:
	// limit 2 of 2
	// running: 0
}

func ExamplePermit_Idle() {
	b, err := bulkhead.New(bulkhead.Options{Limit: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	// A program holds a permit with rows open, and for each row runs a read that needs
	// a permit too. The limit is 1, and still it ends.
	outer, _ := b.Acquire(context.Background(), "job", 1)
	for range 3 {
		outer.Idle() // the row is in the program's hands
		nested, err := b.Acquire(context.Background(), "job", 1)
		if err != nil {
			fmt.Println(err)
		}
		nested.Release()
		outer.Busy() // the next row is fetched
	}
	outer.Release()
	fmt.Println("above the limit:", b.Stat().StallSlots)
	// Output: above the limit: 3
}
