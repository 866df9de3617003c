# Cycles with destructors and weak references, closures, evaluated texts and sorts, made and dropped all the time in three threads,
# until stdin ends.
use strict;
use warnings;
use threads;
use threads::shared;
use Scalar::Util qw(weaken);

my $ended :shared = 0;
my $dropped = 0;

{ package Node; sub new { my ($class, $n) = @_; my $self = bless { n => $n }, $class; $self->{me} = $self; Scalar::Util::weaken($self->{me}); $self } sub DESTROY { $dropped += $_[0]{n} } }

sub work {
    my $k = shift;
    $dropped = 0;
    {
        my @nodes = map { Node->new($_) } 0 .. 19;
        $nodes[$_]{next} = $nodes[$_ - 1] for 1 .. 19;
        weaken(my $watched = $nodes[0]);
        @nodes = ();
        return "kept" if $watched;
    }
    my $made = eval "sub made_$k { my \$t = 0; \$t += \$_ for 1 .. shift; \$t } made_$k(49)" || die $@;
    { no strict 'refs'; undef &{"made_$k"}; delete $main::{"made_$k"}; }
    my @closures = map { my $n = $_; sub { $n + shift } } 1 .. 20;
    my $sum = 0;
    $sum += $_->(1) for sort { $b->(0) <=> $a->(0) } @closures;
    (my $text = "abc" x 50) =~ s/(b)(?=c)/uc $1/ge;
    return join ",", $dropped, $made, $sum, $text =~ tr/B//;
}

sub descend { my ($depth, $k) = @_; return $depth ? descend($depth - 1, $k) : work($k) }

sub run {
    my ($wrong, $k) = ("", 0);
    until ($ended) {
        my $is = descend($k % 30, $k);
        $wrong ||= "wrong in $k: $is" if $is ne "190,1225,230,50";
        $k++;
    }
    return $wrong;
}

$| = 1;
no warnings 'recursion';
my @threads = map { threads->create(\&run) } 1 .. 3;
print "ready\n";
1 while <STDIN>;
$ended = 1;
my ($wrong) = grep { $_ } map { $_->join } @threads;
print $wrong || "ok", "\n";
