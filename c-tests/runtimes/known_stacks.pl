# A program of which every possible stack is known: families f_K -> g_K -> h_K, each in a file of
# its own, `family_K.pl`. The first argument says how they call each other:
#
# plain   directly
# deep    f_K at the end of a recursion of 40 r_K
# first   f_K calls g_K through C code that calls back (List::Util::first)
# sort    g_K calls h_K as the comparison of a sort, and within the block of another
# evals   g_K evaluates a string that calls h_K, f_K evaluates a block that dies
# churn   each family is compiled, used, and dropped again
# require g_K requires a file that calls h_K
# pattern g_K calls h_K last in the code of a pattern
# format  g_K writes a format that calls h_K
# begin   g_K, called back by C code, compiles a string that calls h_K meanwhile
# threads plain, in two threads
use strict;
use warnings;
use List::Util ();
# Else the first file in memory would load it.
use PerlIO::scalar ();

my $families = 24;
my $how = shift;
my %calls = (
    first => ['return List::Util::first(sub { g_K($_) < 0 }, 1, 2) || 0;', 'return h_K($n) + 1;'],
    sort => ['return g_K($n) + 1;', 'return (sort by_K 2, 1, 3)[0] + (sort { h_K($a) + 1; } 1, 2)[0];'],
    evals => ['return eval { g_K($n); die "x\n" } || 0;', 'return eval "#line 11 \"family_K.pl\"\nh_K(\$n) + 1";'],
    pattern => ['return g_K($n) + 1;', '"a" =~ /a(?{ h_K() })/; return 1;'],
    format => ['return g_K($n) + 1;', 'return main::written("_form_K");'],
    begin => ['return List::Util::first(sub { g_K($_) < 0 }, 1, 2) || 0;', 'return eval "#line 11 \"family_K.pl\"\nBEGIN { h_K() } 1";'],
    require => ['return g_K($n) + 1;', 'delete $INC{"Required_K.pm"}; return require Required_K;'],
);
my $source = <<'END';
package T;
sub r_K { my $n = shift;
  return $n ? r_K($n - 1) : f_K(3); }

sub f_K { my $n = shift;
  $n += 1;
  F
}

sub g_K { my $n = shift; our $x += 1;
  G
}

sub h_K { my $t = 0;
  for my $i (1 .. 20) {
    $t = ($t * 31 + $i) & 0xffff;
  }
  return $t; }
sub by_K { return h_K(1) || $a <=> $b; }
format _form_K =
@<<<<
h_K()
.
END

open my $null, '>', '/dev/null' or die;
sub written {
    my $own = select $null;
    $~ = 'T::' . shift;
    select $own;
    return write $null;
}

sub required {
    my ($self, $file) = @_;
    my ($k) = $file =~ /^Required_(\d+)\.pm$/ or return;
    my $text = "#line 11 \"family_$k.pl\"\nT::h_$k(2) + 1;\n";
    open my $handle, '<', \$text or die;
    return $handle;
}
unshift @INC, \&required;

sub family {
    my $k = shift;
    my ($f, $g) = @{$calls{$how} || ['return g_K($n) + 1;', 'return h_K($n) + 1;']};
    my $text = $source;
    $text =~ s/\bF\n/$f\n/;
    $text =~ s/\bG\n/$g\n/;
    $text =~ s/_K\b/_$k/g;
    no warnings 'redefine';
    eval "#line 1 \"family_$k.pl\"\n$text; 1" or die $@;
    no strict 'refs';
    return \&{"T::" . ($how eq 'deep' ? "r_$k" : "f_$k")};
}

sub run {
    my $until = shift;
    my @known = map { family($_) } 0 .. $families - 1;
    until ($until->()) {
        for my $k (0 .. $families - 1) {
            my $function = $how eq 'churn' ? family($k) : $known[$k];
            # To compile one takes longer than many calls.
            $function->(40) for 1 .. ($how eq 'churn' ? 10 : 1);
            undef &{"T::${_}_$k"}, delete $T::{"${_}_$k"} for $how eq 'churn' ? qw(r f g h) : ();
        }
    }
}

$| = 1;
no strict 'refs';
my $ended = 0;
$SIG{USR1} = sub { $ended = 1 };
my $told = $$;
if ($how eq 'threads') {
    require threads;
    require threads::shared;
    threads::shared::share(\$ended);
    my @threads = map { threads->create(sub { run(sub { $ended }) }) } 1, 2;
    print "ready\n";
    readline STDIN;
    # 5.8 says as threads end, profiled or not, that its table of strings is not balanced.
    open STDERR, '>', '/dev/null' if $] < 5.010;
    $ended = 1;
    $_->join for @threads;
} else {
    # Another process waits for the end of the input.
    if (!(my $child = fork)) {
        print "ready\n";
        readline STDIN;
        kill USR1 => $told;
        exec '/bin/true';
    }
    run(sub { $ended });
    wait;
}
print "ok\n";
