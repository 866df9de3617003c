// Virtual threads that yield below a recursion: after that most of their methods are still in the heap.
public class Virtual {
    static volatile boolean ended;
    static volatile long sink;

    static void work(long x) {
        for (int i = 0; i < 20_000; i++) x = x * 31 + (x >>> 3);
        sink = x;
    }

    static void down(int levels) {
        if (levels > 0) {
            down(levels - 1);
            sink += levels;
            return;
        }
        work(1);
        Thread.yield();
        work(2);
    }

    static void run() {
        while (!ended) down(20);
    }

    public static void main(String[] arguments) throws Exception {
        Thread[] threads = new Thread[4];
        for (int i = 0; i < threads.length; i++)
            threads[i] = (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, (Runnable) Virtual::run);
        System.out.println("ready");
        while (System.in.read() != '\n') { }
        ended = true;
        for (Thread thread : threads) thread.join();
        System.out.println("ok");
    }
}
