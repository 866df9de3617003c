import java.util.*;
import java.util.zip.*;

/** Threads that sort, compress and build text, until ended. */
public class Work {
    static volatile long sink;

    static long text(int n) {
        StringBuilder out = new StringBuilder();
        for (int i = 0; i < 500; i++) out.append(i * n).append(',');
        return Arrays.stream(out.toString().split(",")).mapToLong(Long::parseLong).sum();
    }

    static long pack(int n) {
        CRC32 crc = new CRC32();
        byte[] data = new byte[200_000];
        new Random(n).nextBytes(data);
        crc.update(data);
        Deflater deflater = new Deflater();
        deflater.setInput(data);
        deflater.finish();
        long size = deflater.deflate(new byte[300_000]);
        deflater.end();
        return crc.getValue() + size;
    }

    public static void main(String[] arguments) throws Exception {
        for (int t = 0; t < 2; t++) new Thread(() -> { for (int n = 1; ; n++) sink += text(n) + pack(n); }, "burn-" + t).start();
        new Thread(() -> { while (true) try { Thread.sleep(3); } catch (InterruptedException e) { return; } }, "rest").start();
    }
}
