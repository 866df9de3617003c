import java.lang.reflect.Method;

/** A method that the JVM calls again and again, from native code. */
public class Upcalls {
    static volatile boolean ended;
    static volatile long sink;

    public static void target() {
        sink++;
    }

    static void calls(Method method) {
        try {
            while (!ended) method.invoke(null);
        } catch (ReflectiveOperationException e) {
            throw new Error(e);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Method method = Upcalls.class.getMethod("target");
        Thread thread = new Thread(() -> calls(method));
        thread.start();
        System.out.println("ready");
        while (System.in.read() != '\n') { }
        ended = true;
        thread.join();
        System.out.println("ok");
    }
}
