use strict; use warnings; use JSON::PP; use Time::HiRes qw(clock_gettime CLOCK_PROCESS_CPUTIME_ID CLOCK_MONOTONIC);
sub work { my ($n, $t) = (shift, 0); for my $i (0 .. $n - 1) { $t = ($t * 31 + $i) & 0xffff } return $t }
sub a { return work(2000) }
sub b { return work(4000) }
sub c { return work(10000) }
my ($rounds, $end, %used) = (0, clock_gettime(CLOCK_MONOTONIC) + shift);
my %subs = (a => \&a, b => \&b, c => \&c);
while (clock_gettime(CLOCK_MONOTONIC) < $end) {
    for my $name (qw(a b c)) {
        my $t = clock_gettime(CLOCK_PROCESS_CPUTIME_ID); $subs{$name}->(); $used{$name} += clock_gettime(CLOCK_PROCESS_CPUTIME_ID) - $t;
    }
    $rounds++;
}
print encode_json([\%used, $rounds, clock_gettime(CLOCK_PROCESS_CPUTIME_ID)]), "\n";
