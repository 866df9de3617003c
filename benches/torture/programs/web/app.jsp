<%@ page import="java.math.BigInteger,java.security.MessageDigest,java.util.*,java.util.stream.*" contentType="text/plain" trimDirectiveWhitespaces="true"
%><%
    String[] path = request.getRequestURI().split("/");
    if (path[1].equals("hash")) {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        out.print(new BigInteger(1, digest.digest(request.getInputStream().readAllBytes())));
    } else {
        int number = Integer.parseInt(path[2]);
        Random random = new Random(number);
        List<Integer> all = IntStream.range(0, 500).map(i -> random.nextInt(10_000)).boxed().collect(Collectors.toList());
        all.sort(Comparator.comparing(n -> -n));
        try { all.get(500); } catch (IndexOutOfBoundsException e) { all.add(number); }
        String row = path[1].equals("json") ? "{\"n\": %d}" : "<td>%d</td>";
        out.print(all.stream().map(n -> String.format(row, n)).collect(Collectors.joining("\n")));
    }
%>
