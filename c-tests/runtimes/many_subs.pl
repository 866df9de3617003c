# Computes until its input ends. The first argument says how:
#
# deep     below 120 subs that call each other, each of 40 statements
# renamed  in closures of one place, each named after the sub that it calls, but for the first, and dropped
# threads  in threads one after another, each of which compiles a sub, named after the one that calls it
use strict;
use warnings;
use Sub::Util 'set_subname';
use if $ARGV[0] eq 'threads', 'threads';

sub computes {
    my $sum = 0;
    $sum += $_ for 1 .. 2_000;
    return $sum;
}

sub compile {
    my $k = shift;
    return eval "sub Named::closure_$k { computes() for 1 .. 200; return 1 } \\&Named::closure_$k" || die $@;
}

my $how = shift;
my $count = $how eq 'deep' ? 120 : 10;
for my $k (0 .. $count - 1) {
    my $next = $how eq 'deep' && $k + 1 < $count ? "called_" . ($k + 1) : 'computes';
    my $statements = "\n\$x++;" x 40;
    $next = "compile($k)->" if $how eq 'threads';
    eval "sub called_$k { my \$x = 1; $statements\n$next(); return \$x } 1" or die $@;
}
my %named = map { no strict 'refs'; ($_ => \&{"called_$_"}) } 0 .. $count - 1;
$| = 1;
print "ready\n";
my $ready = '';
vec($ready, fileno(STDIN), 1) = 1;
# A signal of the sampler may end select: then it is less than 0.
until (select(my $found = $ready, undef, undef, 0) > 0) {
    if ($how eq 'deep') {
        called_0() for 1 .. 20;
        next;
    }
    for my $k (0 .. $count - 1) {
        if ($how eq 'threads') {
            threads->create("called_$k")->join();
            next;
        }
        my $called = $named{$k};
        my $closure = sub { $called->(); return 1 };
        set_subname("Named::closure_$k", $closure) if $k;
        $closure->();
    }
}
print "ok\n";
