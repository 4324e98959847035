// Writes what Java's own regular expressions say: one line for each pattern on standard input, the pattern, a tab, and
// either `error` or one digit for each name (1: the whole name matches).
//
//   java tests/java/RegexGolden.java NAME... < patterns

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;

final class RegexGolden {
    public static void main(String[] names) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String text = input.readLine(); text != null; text = input.readLine()) {
            System.out.println(text + "\t" + answer(text, names));
        }
    }

    private static String answer(String text, String[] names) {
        try {
            Pattern pattern = Pattern.compile(text);
            var digits = new StringBuilder();
            for (String name : names) {
                digits.append(pattern.matcher(name).matches() ? '1' : '0');
            }
            return digits.toString();
        } catch (PatternSyntaxException e) {
            return "error";
        }
    }
}
