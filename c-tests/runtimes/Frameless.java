/** Calls code of the JVM that has no frame: conversions of doubles that no integer can hold, and exceptions. */
public class Frameless {
    static final RuntimeException THROWN = new RuntimeException("", null, false, false) {};
    static volatile long sink;

    static long converts(double value) {
        long sum = 0;
        for (int i = 0; i < 1000; i++) {
            sum += (long) (value * i) + (int) (value + i);
        }
        return sum;
    }

    static int raises(int n) {
        if (n >= 0) {
            throw THROWN;
        }
        return n;
    }

    static int passes(int n) {
        return n % 4 == 0 ? raises(n) : passes(n - 1) + 1;
    }

    static int catches(int n) {
        try {
            return passes(n) + 1;
        } catch (RuntimeException thrown) {
            return 1;
        }
    }

    public static void main(String[] arguments) throws Exception {
        System.out.println("ready");
        while (System.in.available() == 0) {
            for (int i = 0; i < 500; i++) {
                sink += catches(i);
            }
            sink += converts(1e300) + converts(Double.NaN);
        }
        System.out.println("ok");
    }
}
