#!/usr/bin/python
"""Runs a study at the host, as `nicpoll study run` does."""

from __future__ import absolute_import, division, print_function
__metaclass__ = type

DOCUMENTATION = r"""
module: study
short_description: Run a study at the host
description:
  - Runs C(nicpoll study run) at the host, in namespaces of its own unless the study names interfaces.
  - The task is changed if it has stored a study. C(nicpoll study compare --by host) compares those of several hosts.
options:
  name:
    description: A ready study, or a study file at the host.
    type: str
  content:
    description: The text of a study file.
    type: str
  time:
    description: How long it may take, such as C(5m), in place of what the study says.
    type: str
  full:
    description: Run it at its full length.
    type: bool
    default: false
  workload:
    description: Run only these of its workloads.
    type: list
    elements: str
  fail_on:
    description: Fail when a verdict proves this, such as C(worse) or C(worse:5%).
    type: str
attributes:
  check_mode:
    description: It measures nothing, and returns the plan.
    support: full
  diff_mode:
    description: Nothing stays changed.
    support: none
extends_documentation_fragment:
  - nicpoll.polling.command
  - nicpoll.polling.command.store
"""

EXAMPLES = r"""
- name: The same study at each host, two hosts at a time, into one store
  nicpoll.polling.study:
    content: "{{ lookup('ansible.builtin.file', 'period.toml') }}"
    store: postgres://lab@localhost/lab
  throttle: 2
  register: ran

- name: The hosts next to one another
  ansible.builtin.command:
    argv: "{{ ['nicpoll', 'study', 'compare', '--by', 'host', '--store', 'postgres://lab@localhost/lab'] + studies }}"
  vars:
    studies: "{{ ansible_play_hosts | map('extract', hostvars, ['ran', 'study']) | map('string') | list }}"
  delegate_to: localhost
  run_once: true
  changed_when: false
"""

RETURN = r"""
study:
  description: Number of the study in the store; null if it is stored nowhere.
  returned: success
  type: int
is_decided:
  description: Whether a verdict was reached.
  returned: success
  type: bool
comparisons:
  description: The comparisons that get a verdict.
  returned: success, outside check mode
  type: list
  elements: dict
document:
  description: The study as docs/schema.md describes it, without its trials; in check mode its plan.
  returned: success
  type: dict
"""

import os
import tempfile

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.nicpoll.polling.plugins.module_utils.nicpoll import (
    COMMAND, STORE, Nicpoll, options, storing, stored_as)


def main():
    spec = dict(
        name=dict(type='str'),
        content=dict(type='str'),
        time=dict(type='str'),
        full=dict(type='bool', default=False),
        workload=dict(type='list', elements='str'),
        fail_on=dict(type='str'),
    )
    for part in (COMMAND, STORE):
        spec.update(part)
    module = AnsibleModule(
        argument_spec=spec, supports_check_mode=True,
        required_one_of=[('name', 'content')], mutually_exclusive=[('name', 'content')])
    params, nicpoll = module.params, Nicpoll(module)
    name = params['name']
    if name is None:
        handle, name = tempfile.mkstemp(suffix='.toml', dir=module.tmpdir)
        with os.fdopen(handle, 'w') as file:
            file.write(params['content'])
    words = ['study', 'run', name, '--json'] + options(params, 'time', 'full', 'workload')
    if module.check_mode:
        module.exit_json(changed=False, study=None, is_decided=False, document=nicpoll.run(words + ['--dry-run'])[1])
    code, document, said = nicpoll.run(words + options(params, 'fail_on') + storing(params), good=(0, 3, 4))
    document.pop('trials')
    study = stored_as(said)
    result = dict(
        changed=study is not None, study=study, is_decided=code != 4, document=document,
        comparisons=[one for one in document['comparisons'] if one['primary']])
    if code == 3:
        module.fail_json(msg=said.strip().splitlines()[-1], reason='proven', rc=code, **result)
    module.exit_json(**result)


if __name__ == '__main__':
    main()
