// Stops at points whose stacks it tells, as Java itself sees them: each is a random way through methods, lambdas,
// streams, reflection and interfaces. `go` on standard input: to the next point, which it prints as `at ` and the
// functions with their files and lines, leaf first; there it waits for `on`, and prints `gone`.
import java.io.*;
import java.util.*;
import java.util.function.*;
import java.util.stream.*;

public class Barriers {
    static final Random RANDOM = new Random(7);

    interface Step { int go(int depth) throws Exception; }
    static class Walker implements Step {
        final Object lock = new Object();
        public int go(int depth) throws Exception { synchronized (lock) { return step(depth - 1); } }
    }

    static int step(int depth) {
        try {
            if (depth <= 0) return stop();
            switch (RANDOM.nextInt(6)) {
                case 0: return step(depth - 1) + 1;
                case 1: return new Walker().go(depth);
                case 2: return ((Supplier<Integer>) () -> step(depth - 1)).get();
                case 3: return IntStream.of(depth - 1).map(Barriers::step).sum();
                case 4: return (int) Barriers.class.getDeclaredMethod("step", int.class).invoke(null, depth - 1);
                default: return twice(n -> step(n), depth - 1);
            }
        } catch (Exception e) { throw new Error(e); }
    }

    static <T> int twice(IntUnaryOperator of, int n) {
        return of.applyAsInt(n);
    }

    static boolean stops;

    static int stop() throws IOException {
        if (!stops) return 0;
        StackWalker walker = StackWalker.getInstance(EnumSet.of(StackWalker.Option.SHOW_HIDDEN_FRAMES));
        List<String> all = new ArrayList<>();
        walker.forEach(frame -> {
            String name = frame.getClassName() + "." + frame.getMethodName();
            all.add(name + "|" + frame.getFileName() + "|" + Math.max(0, frame.getLineNumber()));
        });
        System.out.println("at " + String.join("\t", all)); await("on"); return 1;
    }

    static void await(String word) throws IOException {
        for (String line = ""; !line.equals(word); ) {
            StringBuilder text = new StringBuilder();
            for (int c = System.in.read(); c != '\n'; c = System.in.read()) {
                if (c < 0) System.exit(0);
                text.append((char) c);
            }
            line = text.toString();
        }
    }

    public static void main(String[] arguments) throws Exception {
        for (int warm = 0; warm < 20000; warm++) step(1 + RANDOM.nextInt(12));
        stops = true;
        System.out.println("ready");
        for (int point = 0; point < 40; point++) {
            await("go");
            step(1 + RANDOM.nextInt(12));
            System.out.println("gone");
        }
        System.out.println("ok");
    }
}
