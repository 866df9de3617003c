import java.io.*;
import java.net.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import java.util.concurrent.locks.*;
import java.util.stream.*;

/** Threads, locks, waits, children, sockets and garbage: every line must be the same whoever looks. */
class Threads {
    static long turn(long value) { for (int i = 0; i < 2_000_000; i++) value = value * 6364136223846793005L + 1442695040888963407L; return value; }

    public static void main(String[] arguments) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(6);
        List<Future<Long>> results = new ArrayList<>();
        for (long i = 0; i < 60; i++) { long n = i; results.add(pool.submit(() -> turn(n))); }
        long sum = 0; for (Future<Long> result : results) sum += result.get();
        System.out.println("computed: " + sum);
        System.out.println("streams: " + IntStream.range(0, 3_000_000).parallel().mapToLong(i -> i * 31L % 977).sum());

        ReentrantLock lock = new ReentrantLock(); Condition changed = lock.newCondition(); int[] state = {0}; int[] wrong = {0};
        Thread[] turns = new Thread[3];
        for (int t = 0; t < 3; t++) { int me = t; turns[t] = new Thread(() -> { for (int i = 0; i < 1000; i++) { lock.lock(); try {
            while (state[0] % 3 != me) if (!changed.await(20, TimeUnit.SECONDS)) wrong[0]++;
            state[0]++; changed.signalAll(); } catch (InterruptedException e) { wrong[0]++; } finally { lock.unlock(); } } }); turns[t].start(); }
        for (Thread thread : turns) thread.join();
        System.out.println("turns: " + state[0] + " " + wrong[0]);

        int early = 0;
        for (int i = 0; i < 200; i++) { long began = System.nanoTime(); Thread.sleep(3); if (System.nanoTime() - began < 2_900_000) early++;
            began = System.nanoTime(); LockSupport.parkNanos(2_000_000); }
        System.out.println("early: " + early);
        AtomicInteger interrupted = new AtomicInteger();
        for (int i = 0; i < 50; i++) { Thread sleeper = new Thread(() -> { try { Thread.sleep(20000); } catch (InterruptedException e) { interrupted.incrementAndGet(); } }); sleeper.start(); Thread.sleep(2); sleeper.interrupt(); sleeper.join(); }
        System.out.println("interrupted: " + interrupted);
        for (int i = 0; i < 3000; i++) { Thread thread = new Thread(() -> {}); thread.start(); thread.join(); }
        System.out.println("threads: 3000");

        long kept = 0; List<byte[]> some = new ArrayList<>(); Random random = new Random(7);
        for (int i = 0; i < 40_000; i++) { byte[] data = new byte[random.nextInt(20_000)]; if (i % 50 == 0) { some.add(data); if (some.size() > 300) some.remove(0); } kept += data.length; }
        System.gc(); System.out.println("garbage: " + kept + " " + some.size());
        int nulls = 0; for (int i = 0; i < 20_000; i++) { try { (i % 2 == 0 ? null : "x").length(); } catch (NullPointerException e) { nulls++; } }
        int deep = 0; for (int i = 0; i < 20; i++) { try { down(0); } catch (StackOverflowError e) { deep++; } }
        System.out.println("faults: " + nulls + " " + deep);

        StringBuilder outputs = new StringBuilder(); int codes = 0;
        for (int i = 0; i < 60; i++) { Process child = new ProcessBuilder("/bin/sh", "-c", "echo " + i + "; exit " + i % 7).redirectErrorStream(true).start();
            try (BufferedReader reader = new BufferedReader(new InputStreamReader(child.getInputStream()))) { outputs.append(reader.readLine()); } codes += child.waitFor(); }
        System.out.println("children: " + outputs.toString().hashCode() + " " + codes);

        try (ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
            Future<Long> served = pool.submit(() -> { long bytes = 0; for (int i = 0; i < 300; i++) try (Socket client = server.accept()) { bytes += client.getInputStream().readAllBytes().length; } return bytes; });
            for (int i = 0; i < 300; i++) try (Socket client = new Socket(server.getInetAddress(), server.getLocalPort())) { client.getOutputStream().write(new byte[i * 100]); }
            System.out.println("sockets: " + served.get());
        }
        try (ServerSocket server = new ServerSocket(0)) { server.setSoTimeout(5); int times = 0; for (int i = 0; i < 100; i++) try { server.accept(); } catch (SocketTimeoutException e) { times++; } System.out.println("time-outs: " + times); }
        pool.shutdown(); System.out.println("ended: " + pool.awaitTermination(20, TimeUnit.SECONDS));
    }
    static int down(int n) { return down(n + 1) + 1; }
}
