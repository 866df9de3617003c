// Go with C inside: goroutines that compute, that call C, and that are called by C. The stacks of Go's threads change in
// assembly, behind which there is nothing.
package main

/*
static double in_c(int times)
{
    volatile double sum = 0;
    for (int i = 0; i < times; i++)
        sum += i * 0.5;
    return sum;
}
extern void calledByC(int);
static void call_back(int times)
{
    calledByC(times);
}
*/
import "C"

import (
	"fmt"
	"runtime"
	"sort"
)

var sink float64

//export calledByC
func calledByC(times C.int) {
	hot(int(times))
}

//go:noinline
func hot(size int) {
	numbers := make([]int, size)
	for i := range numbers {
		numbers[i] = (i * 7919) % size
	}
	sort.Ints(numbers)
	sink += float64(numbers[0])
}

func main() {
	fmt.Println("ready")
	go func() {
		for {
			hot(20000)
			runtime.Gosched()
		}
	}()
	go func() {
		for {
			C.call_back(5000)
		}
	}()
	for {
		sink += float64(C.in_c(200000))
	}
}
