# SPDX-License-Identifier: BSD-3-Clause
"""A campaign of railgauge as a test of ReFrame 4.

    reframe -c railgauge_check.py -r                                   this machine, over MPI
    reframe -c railgauge_check.py -r -S options=--hosts,n[01-18]:4     18 hosts of 4 GPUs
    reframe -c railgauge_check.py -r -S preset=gb200-nvl72             ... held against published rates

The test fails where `railgauge accept` says FAIL, with the parts at fault and what to do about them, or where a figure is
more than 5 % below its reference.  Figures are the rates of tiers and the bus bandwidths of collectives, in GB/s, by the
names that `railgauge show` has for them; each is logged, reference or not.  A site sets its own:

    @rfm.simple_test
    class OurRacks(RailgaugeCheck):
        options = ['--launch', 'srun -N18 -n72']
        reference = {'ours:gpu': {'rail': (49.2, -0.05, None, 'GB/s'),
                                  'all_reduce 72 ranks, 1 domain': (840, -0.05, None, 'GB/s')}}
"""
import json
import os
import shlex

import reframe as rfm
import reframe.utility.sanity as sn
import reframe.utility.typecheck as typ
from reframe.core.builtins import run_before, sanity_function, variable

TOLERANCE = -0.05


class RailgaugeCheck(rfm.RunOnlyRegressionTest):
    """The campaign; of a subclass with @rfm.simple_test."""

    descr = 'rates of the fabric between GPUs, and the parts that are slow'
    valid_systems = ['*']
    valid_prog_environs = ['*']
    executable = 'railgauge'
    time_limit = '2h'

    #: words behind `railgauge run`: --hosts, --launch, --fabric and others
    options = variable(typ.List[str], value=[])
    #: preset or matrix that accept compares with, by default what goes with the GPUs; its rates are the references of
    #: figures that have none
    preset = variable(str, value='')

    @run_before('run')
    def words(self):
        against = ['--against', self.preset] if self.preset else []
        self.executable_opts = ['run', '-o', 'campaign', '--no-plots', '--no-verdict', *map(shlex.quote, self.options)]
        self.postrun_cmds = [
            # 0 pass, 1 fail, 2 could not judge: verdict() reads which
            shlex.join(['railgauge', 'accept', 'campaign', '-q', '-o', 'accept.json', *against]) + ' || [ $? -le 2 ]',
            'railgauge show campaign --json >show.json',
        ]
        self.keep_files = ['campaign', 'accept.json', 'show.json']

    def answer(self, name):
        with open(os.path.join(self.stagedir, name), encoding='utf-8') as f:
            return json.load(f)

    @sanity_function
    def verdict(self):
        accept = self.answer('accept.json')
        bad = [f"{c['what']}: {c['value']:.4g} {c['unit']}, limit {c['limit']:.4g}" for c in accept['checks']
               if c['verdict'] == 'FAIL']
        todo = [f"{p['name']}: {p['next']}" for p in accept['parts']]
        return sn.assert_ne(accept['verdict'], 'FAIL', msg='; '.join(bad + todo))

    def figures(self):
        """GB/s by name."""
        show = self.answer('show.json')
        out = {t['name']: t['Bps'] / 1e9 for t in show['tiers'] if t['Bps']}
        for c in show['collectives']:
            if c['sizes'] and c['sizes'][-1]['busbw_Bps']:
                out.setdefault(title(c), c['sizes'][-1]['busbw_Bps'] / 1e9)
        return out

    def expected(self):
        """GB/s by name, where the campaign's verdict compared with something."""
        show, out = self.answer('show.json'), {}
        for c in show['collectives']:
            last = c['sizes'][-1] if c['sizes'] else {}
            if last.get('of_expected') and 'preset' in (last.get('expected_from') or ''):
                out[title(c)] = last['busbw_Bps'] / last['of_expected'] / 1e9
        for c in self.answer('accept.json')['checks']:
            share = c['of'].split(' % of ')[0]
            if c['check'] == 'tier-bandwidth' and 'data sheet' not in c['of'] and share.replace('.', '', 1).isdigit():
                tier = c['what'].removeprefix('tier ').split(',')[0]
                out[tier] = c['limit'] / (float(share) / 100) / 1e9
        return out

    def own_reference(self, key, otherwise):
        """What the class says of SYSTEM:PARTITION:FIGURE or a scope above, else the rate that is known, else nothing."""
        try:
            return self.reference[key]
        except (KeyError, TypeError):
            return (otherwise, TOLERANCE, None, 'GB/s') if otherwise else (0, None, None, 'GB/s')

    @run_before('performance')
    def measured(self):
        figures, known = self.figures(), self.expected() if self.preset else {}
        where = self.current_partition.fullname
        self.perf_variables = {
            name: sn.make_performance_function(sn.defer(value), 'GB/s') for name, value in figures.items()
        }
        self.reference = {where: {name: self.own_reference(f'{where}:{name}', known.get(name)) for name in figures}}


def title(c):
    """A collective in the words of railgauge: all_reduce 576 ranks, 8 domains of 72."""
    several = f"s of {c['per_domain']}" if c['domains'] > 1 else ''
    return f"{c['op']} {c['ranks']} ranks, {c['domains']} domain{several}"


@rfm.simple_test
class Railgauge(RailgaugeCheck):
    """As the command line says."""
