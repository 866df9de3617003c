<?php
// Functions that PHP compiles where it can: outer -> array_map -> {closure} -> inner.
function inner($n)
{
    $sum = 0;
    for ($i = 0; $i < $n; $i++) {
        $sum = ($sum * 31 + $i) % 1000003;
    }
    return $sum;
}

function outer($n)
{
    return max(array_map(function ($k) use ($n) { return inner($n + $k); }, [1, 2, 3]));
}

stream_set_blocking(STDIN, false);
echo "ready\n";
while (fgets(STDIN) === false) {
    outer(20000);
}
echo "ok\n";
