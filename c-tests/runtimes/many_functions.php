<?php
// Computes, until its input ends, below 300 functions that call each other.
const COUNT = 300;
for ($k = 0; $k < COUNT; $k++) {
    $calls = $k + 1 < COUNT ? 'called_' . ($k + 1) : 'computes';
    eval("function called_$k() { \$x = 1; return \$x + $calls(); }");
}

function computes()
{
    $sum = 0;
    for ($n = 0; $n < 20000; $n++) {
        $sum += $n;
    }
    return $sum;
}

echo "ready\n";
$ended = false;
while (!$ended) {
    called_0();
    $read = [STDIN];
    $none = null;
    // A signal of the sampler may end it.
    $ended = @stream_select($read, $none, $none, 0) > 0;
}
echo "ok\n";
