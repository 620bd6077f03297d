# summary.pl SKIPPED - behind prove: what it prints as it comes, then the ten slowest files and the skipped tests (of
# the file SKIPPED), and prove's summary last.
use strict;
use warnings;

my ($skipped) = @ARGV;
my ($file, @cost, @summary);
$| = 1;
while (my $line = <STDIN>) {
    $file = $1 if $line =~ /^\[[0-9:]+\] (\S+) \.+/;
    push @cost, [$1 / 1000, $2, $file] if $line =~ /ok +([0-9]+) ms \(.*= +([0-9.]+) CPU\)/;
    if (@summary || $line =~ /^(All tests successful|Test Summary Report)/) {
        push @summary, $line;
    } else {
        print $line;
    }
}
my @slowest = sort { $b->[0] <=> $a->[0] } @cost;
print "slowest:\n" if @slowest;
printf "  %7.1f s %7.1f s CPU  %s\n", @$_ for grep { defined } @slowest[0 .. 9];
if (open my $list, '<', $skipped) {
    my @skips = <$list>;
    print "skipped:\n", map { "  $_" } @skips if @skips;
}
print @summary;
