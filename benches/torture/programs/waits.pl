# What perl programs do that wait: every line must be the same whoever looks at them. Times are told as whether the
# wait was as long as it should be, never how long it was.
use strict; use warnings;
use Time::HiRes qw(time sleep usleep nanosleep ualarm alarm);
use IO::Socket::INET; use IO::Select; use POSIX ();
$| = 1;
my %short;
sub waited { my ($name, $least, $code) = @_; my $began = time; $code->(); $short{$name}++ if time - $began < $least - 0.0005; }
for (1 .. 300) {
    waited("sleep", 0.003, sub { sleep 0.003 });
    waited("usleep", 0.002, sub { usleep 2000 });
    waited("nanosleep", 0.002, sub { nanosleep 2_000_000 });
    waited("select", 0.003, sub { select undef, undef, undef, 0.003 });
}
print "waits that were cut short: ", join(",", map {"$_=$short{$_}"} sort keys %short), ".\n";
print "CORE::sleep: ", join(",", map { CORE::sleep(1) } 1 .. 3), "\n";
my $alarms = 0;
$SIG{ALRM} = sub { $alarms++ };
for (1 .. 100) { ualarm 2000; my $before = $alarms; my $until = time + 5; while ($alarms == $before && time < $until) { select undef, undef, undef, 0.5 } }
print "alarms: $alarms\n";
my $died = 0;
for (1 .. 100) { eval { local $SIG{ALRM} = sub { die "time\n" }; ualarm 3000; CORE::sleep 5; ualarm 0; }; $died++ if $@ eq "time\n"; }
print "left by die in a handler: $died\n";
my ($reaped, $sum) = (0, 0);
for my $n (1 .. 300) {
    my $pid = fork // die; if (!$pid) { my $x = 0; $x += $_ * $n for 1 .. 200; POSIX::_exit($x % 200) }
    waitpid $pid, 0; $reaped++; $sum += $? >> 8;
}
print "children: $reaped $sum\n";
my $chld = 0; $SIG{CHLD} = sub { while (waitpid(-1, POSIX::WNOHANG()) > 0) { $chld++ } };
for (1 .. 100) { my $pid = fork // die; POSIX::_exit(0) unless $pid; }
my $until = time + 30; while ($chld < 100 && time < $until) { sleep 0.01 }
print "told by SIGCHLD: $chld\n"; $SIG{CHLD} = 'DEFAULT';
my $text = join "", map { scalar `echo $_` } 1 .. 100; print "back-ticks: ", length $text, "\n";
print "system: ", join(",", map { system("sh", "-c", "exit $_") >> 8 } 1 .. 20), "\n";
my $server = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1') or die;
if (!(my $pid = fork // die)) {
    for (1 .. 200) { my $client = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $server->sockport) or POSIX::_exit(1); print $client "x" x 5000, "\n"; close $client; }
    POSIX::_exit(0);
}
my ($taken, $bytes, $failed) = (0, 0, 0);
my $select = IO::Select->new($server);
while ($taken < 200) {
    my @ready = $select->can_read(20); last unless @ready;
    my $client = $server->accept or do { $failed++; next }; $taken++;
    while (1) { my $n = sysread $client, my $buffer, 65536; if (!defined $n) { $failed++; last } last unless $n; $bytes += $n; }
}
wait; print "sockets: $taken $bytes $failed\n";
pipe my $r, my $w or die; my $writer = fork // die;
if (!$writer) { close $r; for (1 .. 50) { syswrite $w, "line $_\n"; select undef, undef, undef, 0.004 } POSIX::_exit(0) }
close $w; my $lines = 0; my $errors = 0;
while (1) { my $n = sysread $r, my $buffer, 4096; if (!defined $n) { $errors++; next if $errors < 10; last } last unless $n; $lines += ($buffer =~ tr/\n//); }
wait; print "pipe: $lines $errors\n";
