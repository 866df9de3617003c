<?php
// Stops at points whose stacks it tells: for each line of standard input, the program goes down a
// random path of functions, prints it as debug_backtrace() sees it, and waits there for another line.

class Shape implements IteratorAggregate
{
    public $path;
    public $ends = false;
    function __construct($path) { $this->path = $path; }
    function method($path) { return step($path); }
    static function of_class($path) { return step($path); }
    function __toString() { return (string)step($this->path); }
    function __get($name) { return step($this->path); }
    function __call($name, $arguments) { return step($this->path); }
    #[ReturnTypeWillChange]
    function getIterator() { step($this->path); return new ArrayIterator([]); }
    function __destruct() { if ($this->ends) { step($this->path); } }
}

function named($path)
{
    foreach ([1] as $once) {
        return step($path);
    }
}

function generated($path)
{
    yield step($path);
}

$ways = [
    function ($path) { return step($path); },
    'named',
    function ($path) { return array_map(function ($one) use ($path) { return step($path); }, [1]); },
    function ($path) { $two = [2, 1]; usort($two, function ($a, $b) use ($path) { return step($path); }); return 0; },
    function ($path) { return call_user_func('step', $path); },
    function ($path) { return call_user_func_array([new Shape($path), 'method'], [$path]); },
    function ($path) { return Shape::of_class($path); },
    function ($path) { return "" . new Shape($path); },
    function ($path) { return (new Shape($path))->missing; },
    function ($path) { return (new Shape($path))->missing(1); },
    function ($path) { foreach (new Shape($path) as $none) { } return 0; },
    function ($path) { $shape = new Shape($path); $shape->ends = true; unset($shape); return 0; },
    function ($path) { foreach (generated($path) as $one) { } return 0; },
    function ($path) { return eval('return step($path);'); },
    function ($path) { try { throw new Exception; } catch (Exception $caught) { return step($path); } finally { $path = 0; } },
    function ($path) { global $file, $next; $next = $path; return include $file; },
];

// The frames, leaf first: what runs, and where it is. The first one is of whoever asks.
function told()
{
    $told = [];
    $frames = debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS);
    foreach ($frames as $at => $frame) {
        $caller = $frames[$at + 1] ?? ['function' => '{main}'];
        $name = (isset($caller['class']) ? $caller['class'] . '::' : '') . $caller['function'];
        $told[] = $name . '|' . ($frame['file'] ?? '') . '|' . ($frame['line'] ?? 0);
    }
    return implode("\t", $told);
}

function step($path)
{
    global $ways, $reached;
    if ($path) {
        return $ways[$path[0]](array_slice($path, 1));
    }
    if ($reached++) {
        return 0;
    }
    echo 'at ', told(), "\n"; fgets(STDIN);
    return 0;
}

$file = tempnam(sys_get_temp_dir(), 'barriers');
file_put_contents($file, '<?php return step($GLOBALS["next"]);');
register_shutdown_function(function () use ($file) { unlink($file); });
mt_srand(7);
echo "ready\n";
while (fgets(STDIN) !== false) {
    $reached = 0;
    while (!$reached) {
        $path = [];
        for ($left = mt_rand(0, 9); $left; $left--) {
            $path[] = mt_rand(0, count($ways) - 1);
        }
        step($path);
    }
    echo "gone\n";
}
echo "ok\n";
