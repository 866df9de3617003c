// A program of which every possible stack is known: families f -> g -> h, each a class Family_K of its own, out of
// Family.java. The arguments are how they run, and the directory that has their classes:
//
// plain     one after the other
// threads   in three threads at a time
// virtual   in three virtual threads at a time
// deep      f at the end of a recursion of 40 r
// deeper    the same, of 1,500
// churn     each family is loaded, used, and dropped again
// collected the same, with a collection after each
import java.io.File;
import java.net.*;
import java.util.function.IntUnaryOperator;

public class KnownStacks {
    static final int FAMILIES = 24;
    static volatile boolean ended;
    static volatile int sink;

    static IntUnaryOperator load(URL[] classes, int k) throws Exception {
        // Not by the loader of this class: such classes stay.
        URLClassLoader loader = new URLClassLoader(classes, null);
        return (IntUnaryOperator) loader.loadClass("Family_" + k).getDeclaredConstructor().newInstance();
    }

    static void run(String how, URL[] classes) {
        try {
            IntUnaryOperator[] families = new IntUnaryOperator[FAMILIES];
            boolean isDropped = how.equals("churn") || how.equals("collected");
            int depth = how.equals("deep") ? 40 : how.equals("deeper") ? 1500 : 0;
            for (int round = 0; !ended; round++) {
                int k = round % FAMILIES;
                if (families[k] == null || isDropped) families[k] = load(classes, k);
                long until = System.nanoTime() + 2_000_000L;
                do sink += families[k].applyAsInt(depth); while (System.nanoTime() < until && !ended);
                if (isDropped) families[k] = null;
                if (how.equals("collected")) System.gc();
            }
        } catch (Exception e) { throw new Error(e); }
    }

    static Thread start(String how, Runnable work) throws Exception {
        if (how.equals("virtual"))
            return (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, work);
        Thread thread = new Thread(null, work, "work", 64L << 20);
        thread.start();
        return thread;
    }

    public static void main(String[] arguments) throws Exception {
        URL[] classes = {new File(arguments[1]).toURI().toURL()};
        String how = arguments[0];
        Thread[] threads = new Thread[how.equals("threads") || how.equals("virtual") ? 3 : 1];
        for (int i = 0; i < threads.length; i++) threads[i] = start(how, () -> run(how, classes));
        System.out.println("ready");
        while (System.in.read() != '\n') { }
        ended = true;
        for (Thread thread : threads) thread.join();
        System.out.println("ok");
    }
}
