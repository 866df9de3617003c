// Threads that make garbage, wait for each other and throw: Mono stops them with signals for each collection.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Threading;

class Collects {
    static long Churn(int seed, int rounds) {
        long sum = seed;
        var kept = new List<int[]>();
        for (int round = 0; round < rounds; round++) {
            var array = new int[500];
            for (int i = 0; i < array.Length; i++) array[i] = i + round;
            if (round % 100 == 0) kept.Clear();
            kept.Add(array);
            foreach (var value in array) sum = (sum * 31 + value) % 1000003;
            try { if (round % 500 == 0) throw new InvalidOperationException(); } catch (InvalidOperationException) { sum++; }
            if (round % 2000 == 0) Thread.Sleep(1);
        }
        return sum;
    }
    static void Main() {
        var sums = new long[4];
        var threads = new Thread[4];
        for (int i = 0; i < 4; i++) { int at = i; threads[i] = new Thread(() => sums[at] = Churn(at, 20000)); threads[i].Start(); }
        foreach (var thread in threads) thread.Join();
        Console.WriteLine("sums: " + string.Join(" ", sums));
        var queue = new Queue<int>();
        long consumed = 0;
        var consumer = new Thread(() => {
            for (int n = 0; n < 20000; n++) lock (queue) { while (queue.Count == 0) Monitor.Wait(queue); consumed += queue.Dequeue(); }
        });
        consumer.Start();
        for (int n = 0; n < 20000; n++) lock (queue) { queue.Enqueue(n); Monitor.Pulse(queue); }
        consumer.Join();
        Console.WriteLine("consumed: " + consumed);
        int fired = 0;
        using (var timer = new Timer(state => Interlocked.Increment(ref fired), null, 5, 5)) { while (fired < 50) Thread.Sleep(1); }
        Console.WriteLine("timers: " + (fired >= 50));
        for (int n = 0; n < 20; n++) GC.Collect();
        try { string nothing = null; Console.WriteLine(nothing.Length); } catch (NullReferenceException) { Console.WriteLine("null: caught"); }
        bool interrupted = false;
        var sleeper = new Thread(() => { try { Thread.Sleep(Timeout.Infinite); } catch (ThreadInterruptedException) { interrupted = true; } });
        sleeper.Start(); Thread.Sleep(50); sleeper.Interrupt(); sleeper.Join();
        Console.WriteLine("interrupted: " + interrupted);
        var child = Process.Start(new ProcessStartInfo("/bin/sh", "-c \"sleep 0.05; exit 7\"") { UseShellExecute = false });
        child.WaitForExit();
        Console.WriteLine("child: " + child.ExitCode);
    }
}
