import java.lang.management.*;
import java.util.*;

/** Three functions that calculate, fill maps and sort, and the CPU time of each, for so many seconds. */
public class Shares {
    static volatile double sink;

    static double a() {
        double sum = 0;
        for (int i = 1; i < 20_000; i++) sum += Math.sin(i) * Math.sqrt(i);
        return sum;
    }

    static double b() {
        Map<String, Integer> map = new HashMap<>();
        for (int i = 0; i < 15_000; i++) map.merge("k" + i % 100, i, Integer::sum);
        return map.values().stream().mapToLong(value -> value).sum();
    }

    static double c() {
        List<Integer> list = new ArrayList<>();
        Random random = new Random(1);
        for (int i = 0; i < 5_000; i++) list.add(random.nextInt());
        list.sort(Comparator.comparing(value -> -value));
        return list.get(0);
    }

    public static void main(String[] arguments) {
        long end = System.nanoTime() + (long) (Double.parseDouble(arguments[0]) * 1e9);
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        double[] used = new double[3];
        int rounds = 0;
        for (; System.nanoTime() < end; rounds++) {
            long[] at = new long[4];
            at[0] = threads.getCurrentThreadCpuTime();
            sink += a();
            at[1] = threads.getCurrentThreadCpuTime();
            sink += b();
            at[2] = threads.getCurrentThreadCpuTime();
            sink += c();
            at[3] = threads.getCurrentThreadCpuTime();
            for (int i = 0; i < 3; i++) used[i] += (at[i + 1] - at[i]) / 1e9;
        }
        double all = threads.getCurrentThreadCpuTime() / 1e9;
        System.out.printf(Locale.ROOT, "[{\"a\": %f, \"b\": %f, \"c\": %f}, %d, %f]%n", used[0], used[1], used[2], rounds, all);
    }
}
