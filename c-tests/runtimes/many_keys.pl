# Loads the library that is named, whose constructor makes keys, and computes until its input ends.
use strict;
use warnings;
require DynaLoader;

sub computes {
    my $sum = 0;
    $sum += $_ for 1 .. 20_000;
    return $sum;
}

DynaLoader::dl_load_file($ARGV[0], 0) or die DynaLoader::dl_error();
$| = 1;
print "ready\n";
my $ready = '';
vec($ready, fileno(STDIN), 1) = 1;
# A signal of the sampler may end select: then it is less than 0.
computes() until select(my $found = $ready, undef, undef, 0) > 0;
print "ok\n";
