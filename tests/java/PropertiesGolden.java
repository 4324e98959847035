// What java.util.Properties makes of random texts: one line each, the text in hex, then "error" or each key and value in
// hex, sorted. Run: java tests/java/PropertiesGolden.java > engine/src/config/properties/golden-jdk17.tsv

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Properties;
import java.util.Random;
import java.util.TreeMap;

public class PropertiesGolden {
    static final byte[] ALPHABET = "aabkv==:  \t\f\\\\\\\n\n\r#!utnrf0041.é".getBytes(StandardCharsets.ISO_8859_1);
    static final int TEXTS = 1500;
    static final int BYTES_MAX = 28;

    public static void main(String[] arguments) throws IOException {
        Random random = new Random(17);
        for (int count = 0; count < TEXTS; count++) {
            byte[] text = new byte[1 + random.nextInt(BYTES_MAX)];
            for (int at = 0; at < text.length; at++) {
                text[at] = ALPHABET[random.nextInt(ALPHABET.length)];
            }
            System.out.println(HexFormat.of().formatHex(text) + "\t" + read(text));
        }
    }

    static String read(byte[] text) throws IOException {
        Properties properties = new Properties();
        try {
            properties.load(new ByteArrayInputStream(text));
        } catch (IllegalArgumentException malformed) {
            return "error";
        }
        TreeMap<String, String> entries = new TreeMap<>();
        properties.forEach((key, value) -> entries.put(hex((String) key), hex((String) value)));
        StringBuilder line = new StringBuilder();
        entries.forEach((key, value) -> line.append(key).append('=').append(value).append(' '));
        return line.toString().trim();
    }

    static String hex(String text) {
        return HexFormat.of().formatHex(text.getBytes(StandardCharsets.UTF_8));
    }
}
