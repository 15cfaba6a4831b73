#!/usr/bin/python
"""Tells how interfaces learn of packets, as `nicpoll show` does."""

from __future__ import absolute_import, division, print_function
__metaclass__ = type

DOCUMENTATION = r"""
module: show
short_description: Tell how interfaces learn of packets
description:
  - Runs C(nicpoll show) at the host, by interrupts or by polling, with the evidence. It changes nothing.
options:
  interface:
    description: Interfaces. Without it all but the loopback.
    type: list
    elements: str
    default: []
  for:
    description: How long polls are watched. C(0) reads the settings only, which needs no privilege.
    type: str
    default: 1s
  netns:
    description: Network namespace, by its name for C(ip netns).
    type: str
attributes:
  check_mode:
    description: It changes nothing.
    support: full
  diff_mode:
    description: There is no difference.
    support: none
extends_documentation_fragment:
  - nicpoll.polling.command
"""

EXAMPLES = r"""
- name: Look at all interfaces for a second
  nicpoll.polling.show:

- name: Stop where eth1 does not poll
  ansible.builtin.assert:
    that: ansible_facts.nicpoll.eth1.setting.discipline == 'polling'
"""

RETURN = r"""
interfaces:
  description: The interfaces, as docs/show.md describes.
  returned: success
  type: list
  elements: dict
ansible_facts:
  description: The same by name.
  returned: success
  type: dict
  contains:
    nicpoll:
      description: The interfaces by their names.
      returned: success
      type: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.nicpoll.polling.plugins.module_utils.nicpoll import COMMAND, Nicpoll, options


def main():
    own = dict(interface=dict(type='list', elements='str', default=[]), netns=dict(type='str'))
    own['for'] = dict(type='str', default='1s')
    module = AnsibleModule(argument_spec=dict(own, **COMMAND), supports_check_mode=True)
    words = ['show', '--json'] + options(module.params, 'for', 'netns') + module.params['interface']
    shown = Nicpoll(module).run(words)[1]['interfaces']
    facts = dict((interface['name'], interface) for interface in shown)
    module.exit_json(changed=False, interfaces=shown, ansible_facts=dict(nicpoll=facts))


if __name__ == '__main__':
    main()
