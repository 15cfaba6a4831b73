#!/usr/bin/python
"""Compares two settings under the traffic that an interface has, as `nicpoll ab` does."""

from __future__ import absolute_import, division, print_function
__metaclass__ = type

DOCUMENTATION = r"""
module: ab
short_description: Compare two settings of an interface under its current traffic
description:
  - Runs C(nicpoll ab) at the host. The interface alternates between its setting and another one, and is restored at the end.
  - It takes I(for), ten minutes by default. Give the task C(async) and C(poll) that fit, or a connection that stays.
  - The task is changed if it has stored a study.
options:
  for:
    description: How long to compare, such as C(30m).
    type: str
  block:
    description: Mean length of a block.
    type: str
  duty:
    description: Measure for this part of each period, such as C(5m/1h).
    type: str
  loss_limit:
    description: Give up when the other setting loses this many times the usual.
    type: str
  'null':
    description: Compare the current setting with itself.
    type: bool
    default: false
  disruptive:
    description: Allow values whose change loses packets at every block.
    type: bool
    default: false
attributes:
  check_mode:
    description: It measures nothing, and returns the plan.
    support: full
  diff_mode:
    description: Nothing stays changed.
    support: none
extends_documentation_fragment:
  - nicpoll.polling.command
  - nicpoll.polling.command.setting
  - nicpoll.polling.command.store
"""

EXAMPLES = r"""
- name: Does polling pay under the traffic of this evening?
  nicpoll.polling.ab:
    interface: eth1
    for: 30m
    store: postgres://lab@db.example/lab?sslmode=disable
  async: 2400
  poll: 30
  register: judged

- name: Switch where it does
  nicpoll.polling.set:
    interface: eth1
    for: 60s
  when: judged.is_recommended
"""

RETURN = r"""
verdict:
  description: The verdict on CPU time in a word, such as C(better); null without one.
  returned: success
  type: str
no_verdict:
  description: Why there is no verdict.
  returned: success
  type: list
is_recommended:
  description: Whether the judged setting is recommended.
  returned: success
  type: bool
study:
  description: Number of the study in the store; null if it is stored nowhere.
  returned: success
  type: int
document:
  description: The document that docs/ab.md describes, without its pairs.
  returned: success
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.nicpoll.polling.plugins.module_utils.nicpoll import (
    COMMAND, SETTING, STORE, Nicpoll, options, setting, storing, stored_as)


def main():
    own = dict(
        block=dict(type='str'),
        duty=dict(type='str'),
        loss_limit=dict(type='str'),
        null=dict(type='bool', default=False),
        disruptive=dict(type='bool', default=False),
    )
    own['for'] = dict(type='str')
    spec = dict(COMMAND)
    for part in (own, SETTING, STORE):
        spec.update(part)
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    params = module.params
    if params['null']:
        params['polling'] = False
    words = ['ab'] + setting(params) + options(params, 'for', 'block', 'duty', 'loss_limit', 'null', 'disruptive')
    words += ['--dry-run', '--json'] if module.check_mode else storing(params) + ['--json']
    document, said = Nicpoll(module).run(words, good=(0, 4))[1:]
    document.pop('pairs')
    answer, study = document['answer'], stored_as(said)
    module.exit_json(
        changed=study is not None, study=study, verdict=answer['verdict'], no_verdict=answer['no_verdict'],
        is_recommended=answer['is_recommended'], document=document)


if __name__ == '__main__':
    main()
