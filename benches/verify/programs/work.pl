# Regular expressions, sorting and forks, until ended.
use strict;
my $text = join ' ', map { "word$_ 2024-10-" . ($_ % 30) } 1 .. 2000;
while (1) {
    my %seen;
    $seen{$1}++ while $text =~ /(\w+\d)\s+(?:\d+-)+(\d+)/g;
    my @sorted = sort { length $a <=> length $b || $b cmp $a } keys %seen;
    (my $copy = $text) =~ s/(\d)-(\d)/$2-$1/g;
    my $pid = fork // die "fork: $!";
    if ($pid == 0) { my $x = 0; $x += length for @sorted; exit($x > 0 ? 0 : 1) }
    waitpid $pid, 0;
    die "the child failed: $?" if $?;
}
