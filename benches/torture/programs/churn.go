// Goroutines, cgo, children, signals, timers and collection: every line must be the same whoever looks.
package main

/*
#include <errno.h>
#include <pthread.h>
#include <time.h>
static unsigned long c_turn(unsigned long value, int rounds) { for (int i = 0; i < rounds; i++) value = value * 6364136223846793005ul + 1442695040888963407ul; return value; }
static void *c_thread(void *argument) { c_turn(1, 100000); return argument; }
static int c_threads(int count) { int good = 0; for (int i = 0; i < count; i++) { pthread_t id; void *back = 0; if (pthread_create(&id, 0, c_thread, &good) == 0) { pthread_join(id, &back); good += back == &good; } } return good; }
*/
import "C"

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

func turn(value uint64, rounds int) uint64 {
	for i := 0; i < rounds; i++ {
		value = value*6364136223846793005 + 1442695040888963407
	}
	return value
}

func deep(n int) int {
	var room [200]byte
	if n == 0 {
		return int(room[0])
	}
	return deep(n-1) + 1 + int(room[n%200])
}

func main() {
	var all sync.WaitGroup
	var sum, c uint64
	for i := 0; i < 20000; i++ {
		all.Add(1)
		go func(n int) {
			defer all.Done()
			atomic.AddUint64(&sum, turn(uint64(n), 1000)+uint64(deep(n%500)))
		}(i)
	}
	all.Wait()
	fmt.Println("goroutines:", sum)
	for i := 0; i < 64; i++ {
		all.Add(1)
		go func(n int) {
			defer all.Done()
			for j := 0; j < 200; j++ {
				atomic.AddUint64(&c, uint64(C.c_turn(C.ulong(n*j), 5000)))
			}
		}(i)
	}
	all.Wait()
	fmt.Println("cgo:", c, int(C.c_threads(200)))

	received := make(chan os.Signal, 1000)
	signal.Notify(received, syscall.SIGUSR1, syscall.SIGWINCH, syscall.SIGURG)
	for i := 0; i < 200; i++ {
		syscall.Kill(os.Getpid(), syscall.SIGUSR1)
		for got := range received {
			if got == syscall.SIGUSR1 {
				break
			}
		}
	}
	signal.Reset()
	fmt.Println("signals:", 200)

	good := 0
	for i := 0; i < 60; i++ {
		output, err := exec.Command("/bin/sh", "-c", fmt.Sprintf("echo %d", i)).Output()
		if err == nil && string(output) == fmt.Sprintf("%d\n", i) {
			good++
		}
	}
	fmt.Println("children:", good)

	early := int64(0)
	for i := 0; i < 200; i++ {
		all.Add(1)
		go func(n int) {
			defer all.Done()
			began := time.Now()
			time.Sleep(time.Duration(n%20) * time.Millisecond)
			if time.Since(began) < time.Duration(n%20)*time.Millisecond {
				atomic.AddInt64(&early, 1)
			}
		}(i)
	}
	all.Wait()
	fmt.Println("early:", early)

	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println("listen:", err)
		return
	}
	go func() {
		for {
			client, err := server.Accept()
			if err != nil {
				return
			}
			go func() { io.Copy(client, client); client.Close() }()
		}
	}()
	echoed := int64(0)
	for i := 0; i < 300; i++ {
		all.Add(1)
		go func(n int) {
			defer all.Done()
			client, err := net.Dial("tcp", server.Addr().String())
			if err != nil {
				return
			}
			go func() { client.Write(make([]byte, n*100)); client.(*net.TCPConn).CloseWrite() }()
			bytes, _ := io.Copy(io.Discard, client)
			atomic.AddInt64(&echoed, bytes)
			client.Close()
		}(i)
	}
	all.Wait()
	server.Close()
	fmt.Println("echoed:", echoed)

	kept := make([][]byte, 300)
	for i := 0; i < 60000; i++ {
		kept[i%300] = make([]byte, i%20000)
		kept[i%300] = append(kept[i%300], byte(i))
	}
	for i := 0; i < 10; i++ {
		runtime.GC()
	}
	total := 0
	for _, one := range kept {
		total += len(one)
	}
	fmt.Println("garbage:", total)
	panics := 0
	for i := 0; i < 2000; i++ {
		func() {
			defer func() {
				if recover() != nil {
					panics++
				}
			}()
			var nothing *[10]int
			nothing[i%10] = 1
		}()
	}
	fmt.Println("faults:", panics)
}
