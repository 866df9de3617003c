/** Calls code that the JVM makes of no method, above words that calls before it left on the stack. */
public class Stubs {
    static volatile double sink;

    static double sines(int n) {
        double sum = 0;
        for (int i = 1; i < n; i++) {
            sum += Math.sin(i) * Math.sqrt(i);
        }
        return sum;
    }

    static long times(int depth) {
        return depth == 0 ? System.nanoTime() : times(depth - 1) + 1;
    }

    static int copies(byte[] from) {
        return from.clone().length + new String(from).length();
    }

    public static void main(String[] arguments) throws Exception {
        byte[] bytes = new byte[300];
        System.out.println("ready");
        while (System.in.available() == 0) {
            for (int i = 0; i < 50; i++) {
                sink += times(i % 20) + copies(bytes);
                sink += sines(400);
            }
        }
        System.out.println("ok");
    }
}
