"""What the modules share: the command line of nicpoll, its exit codes, and its JSON.

A module asks for one document and returns what is in it. An exit code that the module does not name as good fails
the task, with nicpoll's own words.
"""

from __future__ import absolute_import, division, print_function
__metaclass__ = type

import json
import re

#: What an exit code says (`nicpoll help`). 130 and 143: stopped by a signal.
REASONS = {1: 'failed', 2: 'usage', 3: 'proven', 4: 'undecided', 5: 'unsupported', 130: 'stopped', 143: 'stopped'}

COMMAND = dict(executable=dict(type='str', default='nicpoll'))

SETTING = dict(
    interface=dict(type='list', elements='str', required=True),
    polling=dict(type='bool', default=True),
    period=dict(type='str'),
    defer=dict(type='int'),
    suspend=dict(type='str'),
    threaded=dict(type='bool', default=False),
    busy_poll=dict(type='bool', default=False),
    nice=dict(type='int'),
    rt=dict(type='int'),
    cpu_share=dict(type='int'),
    threaded_cpus=dict(type='str'),
    moderation=dict(type='dict'),
    knobs=dict(type='dict'),
    netns=dict(type='str'),
)

STORE = dict(
    store=dict(type='str'),
    store_password=dict(type='str', no_log=True),
    report=dict(type='path'),
    seed=dict(type='int'),
)


def written(value):
    """A value of an option in nicpoll's words. YAML reads `off` as false."""
    if isinstance(value, dict):
        return ','.join('%s=%s' % (name, written(value[name])) for name in sorted(value))
    if isinstance(value, list):
        return ','.join(value)
    if isinstance(value, bool):
        return 'on' if value else 'off'
    return str(value)


def options(params, *names):
    """The options of these names that the task gives. `name=value` is one word: a value may begin with a dash."""
    found = []
    for name in names:
        value, option = params[name], '--' + name.replace('_', '-')
        if value is True:
            found.append(option)
        elif value not in (None, False, {}, []):
            found.append('%s=%s' % (option, written(value)))
    return found


def setting(params):
    """The interfaces of a setting and what it sets."""
    knobs = ['--knob=' + written(params['knobs'])] if params['knobs'] else []
    polling = ['polling'] if params['polling'] else []
    return params['interface'] + polling + knobs + options(
        params, 'period', 'defer', 'suspend', 'threaded', 'busy_poll', 'nice', 'rt', 'cpu_share', 'threaded_cpus',
        'moderation', 'netns')


def storing(params):
    """Where a command stores what it measures."""
    store = ['--no-store'] if params['store'] == 'none' else options(params, 'store')
    return store + options(params, 'report', 'seed')


class Nicpoll(object):
    """The program at the host."""

    def __init__(self, module):
        self.module = module
        name = module.params['executable']
        self.program = module.get_bin_path(name, opt_dirs=['/usr/local/sbin', '/usr/local/bin'])
        if self.program is None:
            module.fail_json(msg='there is no program %s at this host; install nicpoll, or name it by executable' % name)

    def run(self, words, good=(0,)):
        """Runs a command. Returns its exit code, the document that it prints, and its words to people."""
        password = self.module.params.get('store_password')
        environment = dict(PGPASSWORD=password) if password else {}
        code, out, said = self.module.run_command([self.program] + words, environ_update=environment)
        if code not in good:
            # Below the first line clap explains the usage.
            lines = [line for line in said.splitlines() if line.strip()] or ['exit code %d' % code]
            why = lines[0] if code == 2 else lines[-1]
            why = re.sub('^(nicpoll|error): ', '', why)
            self.module.fail_json(msg=why, reason=REASONS.get(code, 'killed'), rc=code, stderr=said, cmd=words)
        return code, json.loads(out) if out.startswith('{') else None, said


def stored_as(said):
    """The number of the study that a command has stored; None if it has stored none."""
    found = re.search(r'^Stored as study (\d+) in ', said, re.MULTILINE)
    return int(found.group(1)) if found else None
