<?php
function hot($rounds) {
    $sum = 0;
    for ($n = 0; $n < $rounds; $n++) {
        $sum = ($sum * 31 + $n) & 0xffffff;
    }
    return $sum;
}
function work($seconds) {
    $end = microtime(true) + $seconds;
    while (microtime(true) < $end) hot(1000000);
}
work(0.5);
echo "ready\n";
work(60);
