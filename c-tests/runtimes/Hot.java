public class Hot {
    static int hot(int rounds) {
        int sum = 0;
        for (int n = 0; n < rounds; n++) {
            sum = sum * 31 + n;
            if ((sum & 7) == 3) sum ^= rounds;
        }
        return sum;
    }

    static void work(long milliseconds) {
        long end = System.currentTimeMillis() + milliseconds;
        while (System.currentTimeMillis() < end) hot(1000000);
    }

    public static void main(String[] arguments) {
        work(2000);
        System.out.println("ready");
        work(60000);
    }
}
