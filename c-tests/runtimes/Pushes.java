/** Searches and compresses strings, for which the optimizing compiler makes code that moves the stack pointer. */
public class Pushes {
    static volatile int sink;

    static int searches(String in, String what) {
        return in.indexOf(what);
    }

    static int compresses(char[] from) {
        return new String(from).length();
    }

    public static void main(String[] arguments) throws Exception {
        char[] letters = new char[4000];
        for (int i = 0; i < letters.length; i++) {
            letters[i] = (char) ('a' + i * i % 23);
        }
        String in = new String(letters) + "xyz1", what = arguments[0];
        System.out.println("ready");
        while (System.in.available() == 0) {
            for (int i = 0; i < 200; i++) {
                sink += searches(in, what) + compresses(letters);
            }
        }
        System.out.println("ok");
    }
}
