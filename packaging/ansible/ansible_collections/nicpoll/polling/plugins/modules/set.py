#!/usr/bin/python
"""Switches interfaces, as `nicpoll set` does."""

from __future__ import absolute_import, division, print_function
__metaclass__ = type

DOCUMENTATION = r"""
module: set
short_description: Switch interfaces to polling and back
description:
  - Runs C(nicpoll set) at the host. All interfaces of a task are changed, or none.
  - What is set already is not written again, and the task is then not changed.
  - Check mode writes nothing. The diff has each value before and after.
options:
  state:
    description:
      - C(set) sets the values.
      - C(confirmed) keeps a change made with I(for). It sets nothing, and fails if the values are not in force any more.
      - C(restored) puts every value back that nicpoll changed.
    type: str
    choices: [set, confirmed, restored]
    default: set
  for:
    description:
      - Undo the change after this time, such as C(60s), unless it is confirmed. A process at the host does that, whatever
        becomes of the connection. C(forever) keeps it.
      - Without it a change of the interface that carries the connection is undone after 60 s, and the task warns.
    type: str
  fix:
    description: Also change what polling needs, which is the interface up, GRO, and TSO of a veth's other end.
    type: bool
    default: false
  persist:
    description: C(true) also sets it after every boot, C(false) no longer does. Without it nothing changes about that.
    type: bool
  program:
    description: Program that I(persist) runs at boot. Only root may be able to change it.
    type: path
  look:
    description: How long polls are watched for proof, such as C(1s). C(0) does not.
    type: str
attributes:
  check_mode:
    description: It writes nothing and tells what would be written.
    support: full
  diff_mode:
    description: It has each value before and after.
    support: full
extends_documentation_fragment:
  - nicpoll.polling.command
  - nicpoll.polling.command.setting
"""

EXAMPLES = r"""
- name: Poll eth1, for a minute unless the next task gets through
  nicpoll.polling.set:
    interface: eth1
    period: 100us
    for: 60s

- name: Connect again, as a new session has to
  ansible.builtin.meta: reset_connection

- name: Keep it
  nicpoll.polling.set:
    interface: eth1
    period: 100us
    state: confirmed

- name: Poll in threads, after reboots as well
  nicpoll.polling.set:
    interface: [eth1, eth2]
    threaded: true
    threaded_cpus: "2-3"
    persist: true

- name: Change nothing but the interrupt moderation
  nicpoll.polling.set:
    interface: eth1
    polling: false
    moderation: {rx-usecs: 50, adaptive: off}

- name: As it was
  nicpoll.polling.set:
    interface: eth1
    state: restored
"""

RETURN = r"""
writes:
  description: Each value with its interface, name, C(before) and C(after), as docs/switch.md describes.
  returned: success
  type: list
  elements: dict
files:
  description: Files that set the values at boot, with their text before and after.
  returned: success
  type: list
  elements: dict
proofs:
  description: What the polls of each interface showed after the change.
  returned: success
  type: list
  elements: dict
restored:
  description: Interfaces that were put back.
  returned: success
  type: list
  elements: dict
undone_after_seconds:
  description: Time until the change is undone unless it is confirmed; null if it stays.
  returned: success
  type: float
reason:
  description: Why the task failed, C(failed), C(usage), C(unsupported) or C(stopped).
  returned: failure
  type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.nicpoll.polling.plugins.module_utils.nicpoll import COMMAND, SETTING, Nicpoll, options, setting


def of_all(documents, field):
    """What all documents have in a list."""
    return [one for document in documents for one in document[field]]


def differing(documents):
    """The values that differ before and after, by interface and name, and the files that do."""
    before, after = {}, {}
    for write in of_all(documents, 'writes'):
        if write['before'] != write['after'] and not write['is_implied']:
            napi = '' if write['napi_id'] is None else ' of NAPI %d' % write['napi_id']
            name = '%s: %s%s' % (write['interface'], write['name'], napi)
            # What is put back after a failed change comes second.
            before.setdefault(name, write['before'])
            after[name] = write['after']
    values = [dict(before=before, after=after, before_header='values', after_header='values')] if after else []
    files = [file for file in of_all(documents, 'files') if file['before'] != file['after']]
    return values + [
        dict(before=file['before'] or '', after=file['after'] or '', before_header=file['path'],
             after_header=file['path'])
        for file in files]


def pending(nicpoll, params):
    """Seconds until a change of one of the interfaces is undone; None if none is."""
    names = sorted(set(name.split(':')[0] for name in params['interface']) - set(['all']))
    words = ['show'] + names + ['--for=0', '--json'] + options(params, 'netns')
    changes = [interface['pending'] for interface in nicpoll.run(words)[1]['interfaces']]
    times = [change['undone_in_seconds'] for change in changes if change]
    return min([time for time in times if time is not None] or [None])


def main():
    own = dict(
        state=dict(type='str', choices=['set', 'confirmed', 'restored'], default='set'),
        fix=dict(type='bool', default=False),
        persist=dict(type='bool'),
        program=dict(type='path'),
        look=dict(type='str'),
    )
    own['for'] = dict(type='str')
    module = AnsibleModule(argument_spec=dict(own, **dict(COMMAND, **SETTING)), supports_check_mode=True)
    params, nicpoll = module.params, Nicpoll(module)
    state, place = params['state'], params['interface'] + options(params, 'netns')
    wanted = setting(params) + options(params, 'fix')

    def asked(words, is_dry=module.check_mode):
        """What a change writes, or would write."""
        return nicpoll.run(['set'] + words + ['--json'] + (['--dry-run'] if is_dry else []))[1]

    is_changed, undone_after, documents = False, None, []
    if state == 'restored':
        documents.append(asked(place + ['--no-polling']))
    elif state == 'confirmed':
        documents.append(asked(wanted, is_dry=True))
        if differing(documents):
            module.fail_json(msg='these values are not in force: the change was undone already, or never made',
                             reason='failed', writes=documents[0]['writes'])
        is_changed = pending(nicpoll, params) is not None
        if is_changed and not module.check_mode:
            nicpoll.run(['set'] + place + ['--confirm'])
    else:
        wanted += options(params, 'persist', 'program', 'for', 'look')
        if params['for'] not in (None, 'forever') and not module.check_mode:
            # The same change may be on trial already: a second one would be refused.
            would = asked(wanted, is_dry=True)
            if not differing([would]):
                documents.append(would)
                undone_after = pending(nicpoll, params)
        if not documents:
            documents.append(asked(wanted))
            undone_after = documents[0]['undone_after_seconds']
    if params['persist'] is False:
        documents.append(asked(place + ['--no-persist']))
    if undone_after is not None and params['for'] is None:
        module.warn('%s carries this connection, or a change of it is on trial: it is undone in %d s unless it is confirmed'
                    % (', '.join(params['interface']), undone_after))
    diff = differing(documents)
    lists = dict((field, of_all(documents, field)) for field in ('writes', 'files', 'proofs', 'restored'))
    not_back = [one for one in lists['restored'] if not one['is_as_before']]
    if not_back:
        module.fail_json(msg='; '.join(note for one in not_back for note in one['notes']), reason='failed', **lists)
    module.exit_json(changed=is_changed or bool(diff), diff=diff, undone_after_seconds=undone_after, **lists)


if __name__ == '__main__':
    main()
