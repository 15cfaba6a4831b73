"""Options that modules share, for ansible-doc."""

from __future__ import absolute_import, division, print_function
__metaclass__ = type


class ModuleDocFragment:
    """Options of every module, of a setting, and of what is stored."""

    DOCUMENTATION = r"""
options:
  executable:
    description: The program at the host, in its C(PATH), C(/usr/local/sbin) or C(/usr/local/bin), or by its path.
    type: str
    default: nicpoll
requirements:
  - nicpoll and Python 3.6 or newer at the host
author:
  - The nicpoll developers (@nicpoll)
"""

    SETTING = r"""
options:
  interface:
    description:
      - Interfaces, such as C(eth0), or C(eth0:rx0-3) for single receive queues.
      - A VLAN, bond or bridge stands for the interfaces below it.
    type: list
    elements: str
    required: true
  polling:
    description: Whether a timer polls. With C(false) only the other values are set.
    type: bool
    default: true
  period:
    description: Time from the end of one round of polls to the next, such as C(200us).
    type: str
  defer:
    description: Empty polls until the interrupt comes back.
    type: int
  suspend:
    description: How long an application that polls may keep interrupts off, such as C(20ms).
    type: str
  threaded:
    description: Poll in kernel threads.
    type: bool
    default: false
  busy_poll:
    description: Poll in kernel threads without pause. Each takes a whole CPU.
    type: bool
    default: false
  nice:
    description: Nice value of the threads.
    type: int
  rt:
    description: Real-time priority of the threads.
    type: int
  cpu_share:
    description: Upper limit of each thread's CPU time, in percent.
    type: int
  threaded_cpus:
    description: CPUs of the threads, such as C(2-3,6).
    type: str
  moderation:
    description: "Interrupt moderation of the card, such as C({rx-usecs: 50, adaptive: off})."
    type: dict
  knobs:
    description: "Any knob by its name, such as C({rx-ring: 512})."
    type: dict
  netns:
    description: Network namespace, by its name for C(ip netns).
    type: str
"""

    STORE = r"""
options:
  store:
    description:
      - Where trials are stored, a file at the host or a PostgreSQL server, C(postgres://USER@HOST/DATABASE).
      - Without it they go to a file of the host's user. C(none) stores nothing.
    type: str
  store_password:
    description: Password of the server. It is in no command line.
    type: str
  report:
    description: File at the host into which a page with plots is written.
    type: path
  seed:
    description: Seed of the random order. It is drawn without this.
    type: int
"""
