import java.util.*; import java.util.concurrent.*; import java.util.function.*; import java.util.stream.*;

public class Family_K implements IntUnaryOperator {
    static int r(int n) {
        return n > 0 ? r(n - 1) : f(3); }

    static int f(int n) {
        n += 1;
        F
    }

    static int g(int n) { n *= 2;
        G
    }

    static int h(int n) { int t = 0, i = 0;
        while (i < 400) {
            t = (t * 31 + i + n) & 0xffff; i++;
        }
        H }

    static IntStream many(int n) { return IntStream.of(n, 2, 1, 3); }
    static List<Integer> some(int n) { return Arrays.asList(n, 7, 3); }
    static int called(int n) {
        try { return (int) METHOD.invoke(null, n); } catch (ReflectiveOperationException e) { throw new Error(e); }
    }
    static final java.lang.reflect.Method METHOD;
    static {
        try { METHOD = Family_K.class.getDeclaredMethod("h", int.class); } catch (ReflectiveOperationException e) { throw new Error(e); }
    }
    public int applyAsInt(int n) { return r(n); }
}
