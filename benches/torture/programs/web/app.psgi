# PSGI under Starman: a page, a sort, a recursion, an exception, a hash.
use strict;
use warnings;
use Digest::SHA qw(hmac_sha256 hmac_sha256_hex);
use JSON::PP;
use Plack::Builder;
use Plack::Request;
my $json = JSON::PP->new->canonical;

sub total { my ($depth, $n) = @_; return $depth ? $n % 7 + total($depth - 1, $n + 1) : $n }

sub rows {
    my $n = shift;
    my @rows = map { { name => "row" . $_ * $n % 89, total => total($_ % 30, $n) } } 0 .. 59;
    return sort { $a->{total} <=> $b->{total} or $a->{name} cmp $b->{name} } @rows;
}

sub page { return [200, ["Content-Type" => "text/html"], ["<ul>", (map { "<li>" . uc($_->{name}) . " $_->{total}</li>" } rows(shift)), "</ul>"]] }

sub as_json {
    my $n = shift;
    my $answer = eval { { rows => [(rows($n))[0 .. 9]], share => int($n / ($n % 5)) } };
    return [200, ["Content-Type" => "application/json"], [$json->encode($answer)]] if $answer;
    return [422, ["Content-Type" => "application/json"], [$json->encode({ why => $@ =~ /zero/ ? "zero" : "other" })]];
}

sub digest {
    my $data = shift;
    $data = hmac_sha256($data, "salt") for 1 .. 500;
    return [200, ["Content-Type" => "text/plain"], [hmac_sha256_hex($data, "salt")]];
}

builder {
    enable "ContentLength";
    mount "/page" => sub { page(substr $_[0]{PATH_INFO}, 1) };
    mount "/json" => sub { as_json(substr $_[0]{PATH_INFO}, 1) };
    mount "/hash" => sub { digest(Plack::Request->new(shift)->raw_body) };
};
