<?php
// PHP-FPM behind nginx: a page, a sort, a recursion, an exception, a hash.
function total($depth, $n) { return $depth ? $n % 7 + total($depth - 1, $n + 1) : $n; }

function rows($n)
{
    $rows = array_map(function ($i) use ($n) { return ['name' => 'row' . $i * $n % 89, 'total' => total($i % 30, $n)]; }, range(0, 59));
    usort($rows, function ($a, $b) { return [$a['total'], $a['name']] <=> [$b['total'], $b['name']]; });
    return $rows;
}

function page($n)
{
    return '<ul>' . implode('', array_map(function ($row) { return '<li>' . strtoupper($row['name']) . " {$row['total']}</li>"; }, rows($n))) . '</ul>';
}

function as_json($n)
{
    try {
        return json_encode(['rows' => array_slice(rows($n), 0, 10), 'share' => intdiv($n, $n % 5)]);
    } catch (DivisionByZeroError $error) {
        http_response_code(422);
        return json_encode(['why' => $error->getMessage()]);
    }
}

[, $what, $n] = explode('/', $_SERVER['REQUEST_URI'] . '/');
echo $what === 'page' ? page((int) $n) : ($what === 'json' ? as_json((int) $n) : hash_pbkdf2('sha256', file_get_contents('php://input'), 'salt', 500));
