<?php
// A program of which every possible stack is known: families f_K -> g_K -> h_K, each of code that was
// evaluated for itself, 40 lines apart. The first argument says how they call each other:
//
// plain      directly
// methods    as methods of a class, static and not; it has no constructor
// callbacks  through C functions that call back: array_map() and usort()
// deep       f_K at the end of a recursion of 40 r_K
// exceptions h_K throws, f_K catches
// generators g_K is a generator that f_K runs
// includes   g_K includes a file that calls h_K
// fibers     f_K is started in a fiber
// churn      closures, which are compiled, used, and dropped again

const FAMILIES = 24;
// PHP itself forgets some of what it compiles at the program's end only.
ini_set('memory_limit', '2G');
$how = $argv[1];
$calls = [
    'callbacks' => ['return max(array_map("g_K", [$n, 2]));', '$a = [2, 1]; usort($a, fn($x, $y) => h_K($x)); return $a[0];', 'return $t;'],
    'exceptions' => ['try { return g_K($n); } catch (Exception $e) { return 0; }', 'try { return h_K($n) + 1; } finally { $n++; }', 'throw new Exception;'],
    'generators' => ['return array_sum(iterator_to_array(g_K($n)));', 'yield h_K($n); yield from [1];', 'return $t;'],
    'includes' => ['return g_K($n) + 1;', 'global $h; $h = "h_K"; return include FILE;', 'return $t;'],
    'methods' => ['return (new T_K ($n))->g($n) + 1;', 'return self::h($n) + 1;', 'return $t;'],
    'churn' => ['return ($GLOBALS["g"])($n) + 1;', 'return ($GLOBALS["h"])($n) + 1;', 'return $t;'],
];
$source = <<<'END'

function r_K($n) {
  return $n ? r_K($n - 1) : f_K(3); }

function f_K($n) {
  $n += 1;
  F
}

function g_K($n) { $n *= 2;
  G
}

function h_K($n) { $t = 0;
  for ($i = 0; $i < 40; $i++) {
    $t = ($t * 31 + $i) & 0xffff;
  }
  H }

END;
define('FILE', tempnam(sys_get_temp_dir(), 'known'));
file_put_contents(FILE, "<?php return (\$GLOBALS['h'])(2) + 1;\n");
register_shutdown_function(fn() => unlink(FILE));

function family($k)
{
    global $how, $calls, $source, $f, $g, $h;
    $lines = $calls[$how] ?? ['return g_K($n) + 1;', 'return h_K($n) + 1;', 'return $t;'];
    $text = str_replace(["F\n", "G\n", "H }"], ["$lines[0]\n", "$lines[1]\n", "$lines[2] }"], $source);
    if ($how === 'churn') {
        $text = preg_replace('/function r_K.*?\}/s', "\n", $text);
        $text = preg_replace('/function ([fgh])_K(.*?)\}\n(?=\n|$)/s', '\$GLOBALS["$1"] = function $2};' . "\n", $text);
    } elseif ($how === 'methods') {
        $text = 'class T_K {' . preg_replace(['/ r_K\(\$n - 1\) : f_K\(3\)/', '/function ([rf])_K/', '/_K\(/'], ['0 : 0', 'static function $1_K', '('], $text) . '}';
    }
    eval(str_repeat("\n", 40 * $k) . str_replace('_K', "_$k", $text));
    return $how === 'churn' ? $f : ($how === 'methods' ? "T_$k::f" : ($how === 'deep' ? "r_$k" : "f_$k"));
}

function run()
{
    global $how, $ended;
    $known = $how === 'churn' ? [] : array_map('family', range(0, FAMILIES - 1));
    stream_set_blocking(STDIN, false);
    while (fgets(STDIN) === false) {
        for ($k = 0; $k < FAMILIES; $k++) {
            $function = $known[$k] ?? family($k);
            $how === 'fibers' ? (new Fiber($function))->start(40) : $function(40);
        }
    }
}

echo "ready\n";
run();
echo "ok\n";
