"""Words of one meaning, and words that follow from others: what a narration may say in the place of a finding's own words.

A table of the field, not of the language: parts stay apart from parts, deeds from deeds, so that no row leads from one thing to
another. `SYNONYMS` holds both ways and for all guards; `IMPLIED` holds one way and only within the statement that a clause rests on.
"""

# ruff: noqa: SIM905
from __future__ import annotations

SYNONYMS = tuple(
    tuple(row.split())
    for row in """
gpu card accelerator
answer respond response reply responsive unresponsive silent react reach unreachable
hang stuck hung block stall freeze wait
crash die abort
lost lose loss disappear vanish gone missing
hot heat overheat warm thermal temperature
slow slowdown slower throttle sluggish
clock frequency
cut reduce lower drop
memory hbm vram framebuffer
pci pcie
uncorrectable uncorrected
repair mend heal
reset resetting
reboot restart
restart relaunch
raise increase
batch minibatch
loader dataloader
input data
storage filesystem file
rank worker-rank
low small little
timeout timed-out time-out
exception fault
exception raise throw
come recover return back
hold throttle
illegal invalid
application program app process
fall drop disappear leave lose lost vanish
check inspect look examine verify
inspect check look examine
look check inspect
ask contact consult
limit cap quota
brake braking
reject refuse
damaged damage
collective communication
record log write
fail failure failed
run running start
attach connect
job training workload
remap remapping
drain empty
transfer transmission
leftover left outlive orphan behind hold occupy
occupy hold keep
idle unused
interface adapter nic
link connection
interrupt break
node machine server host
bus pcie pci
protect protection
contain confine
hot heat heated thermal
slow slowdown slower slowly throttle throttling
loss lost lose
recommend recommendation
repair remap remapping
remove removal
inspect inspection look check examine
restart restarting
utilisation utilization
include including
lead leads
thread threads
application program app
exceed reach
uncorrectable uncorrected
map mapped
wait waiting stall
touch access
connection link
pending await
end terminate
error errored
speed clock
""".strip().splitlines()
)

# A word that may be said, and the words of which one must stand in the statement.
IMPLIED = {
    word: frozenset(given.split())
    for word, _, given in (
        row.partition(": ")
        for row in """
only: small little few low less limit shadow default idle
recur: again repeat happen
repeat: again recur
again: recur again back
happen: again
late: again
wait: pending queue need
pending: wait
prepare: pending make made
active: yes assert active
inactive: inactive
reduce: lower cut half slow
slow: lower cut clock low throttle wait idle hold
low: lower fewer less
high: highest maximum raise
raise: exception
fail: error fault died broken end
failure: fail error fault fall lost die
job: application program rank training whatever loader
process: process rank application program use whatever what
work: job
training: rank
program: kernel cuda
application: kernel
rank: rank
memory: ecc row dram hbm
correct: uncorrectable uncorrected
reach: fall answer
answer: answer
connect: lane link
bandwidth: lane
many: count
neighbour: other
neighbor: other
leave: outlive left
leftover: outlive gone
keep: hold
earlier: outlive gone
old: outlive
tool: nvml call
monitor: nvml
effect: pending take
every: all each
everything: all what
each: every all
all: every each
inside: in itself
within: in
finish: let finish
stop: died kill
crash: died fail
bring: start restart
back: restart hold
single: one
cut: slow throttle
adjust: set raise drop
setting: set
enlarge: more raise
increase: raise more
remove: drop
switch: set
higher: raise
cooler: cool
late: time
touch: open access
use: open launch hold
card: gpu
path: path
hardware: gpu
follow-up: explain
unreachable: answer
silent: answer
respond: answer
broken: fail down
dead: down answer lost
separate: other
software: software
timeout: timed
effective: effect
data: dataloader
run: kernel
team: inspect check ask look
neighbours: other
loss: lost fall
""".strip().splitlines()
    )
}
