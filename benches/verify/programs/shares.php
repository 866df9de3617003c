<?php
function work($n) { $t = 0; for ($i = 0; $i < $n; $i++) $t = ($t * 31 + $i) & 0xffff; return $t; }
function a() { return work(20000); }
function b() { return work(40000); }
function c() { return work(100000); }
function cpu() { $u = getrusage(); return $u['ru_utime.tv_sec'] + $u['ru_stime.tv_sec'] + ($u['ru_utime.tv_usec'] + $u['ru_stime.tv_usec']) / 1e6; }
$used = ['a' => 0, 'b' => 0, 'c' => 0];
$end = microtime(true) + $argv[1];
for ($rounds = 0; microtime(true) < $end; $rounds++) {
    foreach (['a', 'b', 'c'] as $f) { $t = cpu(); $f(); $used[$f] += cpu() - $t; }
}
echo json_encode([$used, $rounds, cpu()]), "\n";
