<?php
// Of ASCII, names have letters, digits and underscores.
$names = ["h2_" . str_repeat("x", 10000), "h3_\u{202e}turned\u{2066}\u{2028}", "h5_\xff\xfe\xc3"];
foreach ($names as $name) {
    eval("function $name(\$next, ...\$rest) { \$done = \$next(...\$rest); return \$done; }");
}
function spin() { while (true) { for ($i = 0; $i < 1000; $i++); } }
echo "ready\n";
$names[] = 'spin';
$first = array_shift($names);
$first(...$names);
