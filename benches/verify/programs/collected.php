<?php
// Cycles with destructors, weak references, closures, generators and evaluated texts, collected all the time, until stdin ends.
class Node
{
    public $n, $me;
    static $dropped = 0;
    function __construct($n) { $this->n = $n; $this->me = $this; }
    function __destruct() { self::$dropped += $this->n; }
}

function numbers($n) { for ($i = 0; $i < $n; $i++) yield $i; }

function work($k)
{
    Node::$dropped = 0;
    $nodes = array_map(function ($n) { return new Node($n); }, range(0, 19));
    $watched = WeakReference::create($nodes[7]);
    $nodes = null;
    gc_collect_cycles();
    $made = eval("return (function (\$n) { \$t = 0; foreach (numbers(\$n) as \$i) \$t += \$i; return \$t; })(50);");
    $list = range(1, 100);
    usort($list, function ($a, $b) { return $b <=> $a; });
    return [Node::$dropped, $watched->get() === null, $made, $list[0], array_sum($list)];
}

function descend($depth, $k) { return $depth ? descend($depth - 1, $k) : work($k); }

stream_set_blocking(STDIN, false);
echo "ready\n";
$wrong = null;
for ($k = 0; !feof(STDIN); $k++) {
    if ($k % 50 === 0) fread(STDIN, 1);
    if (($is = descend($k % 30, $k)) !== [190, true, 1225, 100, 5050]) $wrong = $wrong ?? "wrong in $k: " . json_encode($is);
}
echo $wrong ?? 'ok', "\n";
