# suite.pl FILE... - test files side by side, judged as prove judges them; at the end the ten slowest, the skipped
# tests and prove's summary.  RG_JOBS of them run at once; the table below says what goes with what.  Unless RG_ALL is set,
# what has the tag "nightly" is left out, and counted.
use strict;
use warnings;
use TAP::Formatter::Session;
use TAP::Harness;
use TAP::Parser::Aggregator;

@ARGV or die "usage: suite.pl FILE...\n";
$ENV{RG_BUILD} //= 'build';
$ENV{RG_TIMES} = "$ENV{RG_BUILD}/times";
$ENV{RG_SKIPPED} = "$ENV{RG_BUILD}/skipped";
unlink @ENV{'RG_TIMES', 'RG_SKIPPED'};

# FILE => [seconds, CPU seconds], as tests/tap.sh wrote them.
sub costs {
    open my $list, '<', $ENV{RG_TIMES} or return;
    return map { my ($wall, $user, $sys, $file) = split ' ', s{\n}{}r, 4; $file => [$wall, $user + $sys] } <$list>;
}

# How many tests of a file are left to make check-all, and how many it has.
sub nightly {
    my ($file) = @_;
    return (0, 1) if $ENV{RG_ALL} || $file !~ /\.bats$/ || !open my $text, '<', $file;
    my ($left, $all, $tag, $whole) = (0, 0, 0, 0);
    while (<$text>) {
        $whole = 1 if /^# bats file_tags=.*\bnightly\b/;
        $tag = 1 if /^# bats test_tags=.*\bnightly\b/;
        next unless /^\@test /;
        $all++;
        $left++ if $tag || $whole;
        $tag = 0;
    }
    return ($left, $all);
}
my (@files, $left, @left_of);
for my $file (@ARGV) {
    my ($some, $all) = nightly($file);
    push @files, $file if $some < $all;
    $left += $some;
    push @left_of, "$file $some" if $some;
}

# A file's row: the first whose pattern it ends in.
my @table = map { [split] } grep { /^[^#\s]/ } <DATA>;
sub row {
    my ($file) = @_;
    my ($row) = grep { $file =~ m{(^|/)$table[$_][0]$} } 0 .. $#table;
    return $row // scalar @table;
}

# In the order of the table, then the others as they come: files beside each other, those of one thing in turns, and
# after all of them each that wants the machine for itself.
sub rules {
    my %row = map { $_ => row($_) } @_;
    my (@beside, @alone, %turns);
    for my $file (sort { $row{$a} <=> $row{$b} } @_) {
        my (undef, $kind) = @{$table[$row{$file}] // []};
        (my $name = $file) =~ s/([\\*?{},])/\\$1/g; # a rule is a glob
        if (!$kind || $kind eq 'early') { push @beside, [$name] }
        elsif ($kind eq 'alone') { push @alone, $name }
        elsif ($turns{$kind}) { push @{$turns{$kind}}, $name }
        else { push @beside, $turns{$kind} = [$name] }
    }
    return {seq => [{par => [map { {seq => $_} } @beside]}, {seq => \@alone}]};
}

{
    # prove's own report would count the CPU time of all that ran meanwhile.
    no warnings 'redefine';
    *TAP::Formatter::Session::time_report = sub {
        my %cost = costs();
        my $cost = $cost{$_[0]->name};
        return $cost ? sprintf '%7.1f s %7.1f s CPU', @$cost : '';
    };
}

$| = 1;
my $harness = TAP::Harness->new({
    exec => ['tests/tap.sh'], jobs => $ENV{RG_JOBS} || 2 * qx(nproc), rules => rules(@files),
    timer => 1, failures => 1, comments => 1});
my $sum = TAP::Parser::Aggregator->new;
$sum->start;
my $whole = eval { $harness->aggregate_tests($sum, @files); 1 };
print $@ unless $whole;
$sum->stop;

my %cost = costs();
my @slowest = sort { $cost{$b}[0] <=> $cost{$a}[0] } keys %cost;
print "slowest:\n";
printf "  %7.1f s %7.1f s CPU  %s\n", @{$cost{$_}}, $_ for grep { defined } @slowest[0 .. 9];
if (open my $list, '<', $ENV{RG_SKIPPED}) {
    print "skipped:\n", map { "  $_" } sort <$list>;
}
print "left to make check-all, $left tests:\n", map { "  $_\n" } @left_of if @left_of;
$harness->summary($sum);
exit(!$whole || $sum->has_errors ? 1 : 0);

__DATA__
# Files that do not simply come beside the others.  early: it takes long; alone: it judges times; any other word is what
# files share and take in turns.
tests/verbs/.*                         alone
tests/mpi/(verbs_slow|nccl_scale)\.bats alone
tests/slurm/forky\.bats                early
tests/cli/(python|exam)\.bats          early
tests/(slurm|mpi|ib)/trixie\.bats      trixie
tests/slurm/health\.bats               trixie
tests/cli/packages\.bats              trixie
tests/mpi/watch\.bats                  early
tests/mpi/nccl\.bats                   early
tests/mpi/smpi\.bats                   early
tests/cli/run\.bats                    early
tests/mpi/(nccl_path|resume)\.bats     early
tests/mpi/(replay|gpu_suite)\.bats     early
tests/mpi/(everywhere|ops|compute)\.bats early
tests/cli/plot\.bats                   early
tests/install\.bats                    early
tests/mpi/.*                           early
tests/bad/run\.sh                      early
tests/cli/(examples|jobs|help|api)\.bats early
tests/lab/.*                           alone
