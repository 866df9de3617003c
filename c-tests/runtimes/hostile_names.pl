use strict; use warnings; use Sub::Util 'set_subname';
$| = 1;
my @names = (
    "h0_\nevil 1/2 3.4: 5 cpu-clock:\n\t00 pwned+0x0 (x)",
    "h1_</script><script>alert(1)</script>",
    "h2_" . "x" x 10000,
    "h3_\x{202e}turned\x{2066}\x{2028}",
    "h4_;pwned;b 12",
    "h5_\xff\xfe\xc3",
    "h6_\" onmouseover=\"alert(1)",
    "h7_]]><svg onload=alert(1)>",
    "h8_\0\e[31m->(x)",
);
sub spin { while (1) { my $x = 0; $x += $_ for 1 .. 1000; } }
my @functions;
for my $name (@names) {
    # A closure: else all of them were one sub.
    push @functions, set_subname("main::$name", sub { my ($own, $next) = ($name, shift); my $done = $next->(@_); return $done; });
}
push @functions, \&spin;
print "ready\n";
my $first = shift @functions;
$first->(@functions);
