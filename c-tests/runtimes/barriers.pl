# Stops at points whose stacks it tells: for each line of standard input, the program goes down a
# random path of subs, prints it as caller() sees it, which Carp::longmess asks, and waits there for
# another line.
use strict;
use warnings;
use List::Util ();

{
    package Shape;
    use overload '+' => \&plus;
    sub new { my ($class, @path) = @_; return bless {path => \@path}, $class }
    sub plus { my $self = shift; return main::step(@{$self->{path}}) }
    sub method { my ($self, @path) = @_; return main::step(@path) }
    sub DESTROY { my $self = shift; main::step(@{$self->{path}}) if $self->{ends} }
}

{
    package Tied;
    sub TIESCALAR { my ($class, @path) = @_; return bless \@path, $class }
    sub FETCH { my $self = shift; return main::step(@$self) || 0 }
}

our @path;
my @ways = (
    sub { return step(@_) },
    \&named,
    sub { return eval { step(@_) } },
    sub { local @path = @_; return eval 'step(@path)' },
    sub { my @rest = @_; return List::Util::first(sub { step(@rest) }, 1) },
    sub { my @rest = @_; return (sort { step(@rest); 0 } 1, 2)[0] },
    sub { local @path = @_; return (sort by_path 1, 2)[0] },
    sub { local @path = @_; my @sorted = sort { eval { step(@path) }; 0 } 1, 2; return $sorted[0] },
    sub { return Shape->new(@_) + 1 },
    sub { return Shape->new->method(@_) },
    sub { my $shape = Shape->new(@_); $shape->{ends} = 1; undef $shape; return 0 },
    sub { my @rest = @_; return map { step(@rest) } 1 },
    sub { tie my $tied, 'Tied', @_; return "$tied" },
);

sub named {
    for my $once (1) {
        return step(@_);
    }
}

sub by_path {
    step(@path);
    return 0;
}

our $reached;

sub step {
    my ($next, @rest) = @_;
    return $next->(@rest) if $next;
    # A comparison is called again.
    return 0 if $reached++;
    print "at ", join("\t", told()), "\n"; readline STDIN;
    return 0;
}

# The frames, leaf first: what runs, and where it is. The first one is of whoever asks.
sub told {
    my @told;
    for (my $depth = 0; my (undef, $file, $line) = caller $depth; $depth++) {
        my $sub = (caller $depth + 1)[3] || 'main';
        push @told, "$sub|$file|$line";
    }
    return @told;
}

$| = 1;
srand 7;
print "ready\n";
while (defined readline STDIN) {
    $reached = 0;
    # Some versions do not call all of them.
    step(map { $ways[rand @ways] } 1 .. rand 9) until $reached;
    print "gone\n";
}
print "ok\n";
