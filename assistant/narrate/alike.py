"""Words of one meaning, and words that follow from others: what a narration may say in the place of a finding's own words.

A table of the field, not of the language: parts stay apart from parts, deeds from deeds, so that no row leads from one thing to
another. `SYNONYMS` holds both ways and for all guards; `IMPLIED` holds one way and only within the statement that a clause rests on.
"""

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
node machine
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
slow: lower cut clock low throttle hold
gone: go down fall lose
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
separate: other
software: software
timeout: timed
effective: effect
data: dataloader
run: kernel
team: inspect check ask look
service: manager daemon
damage: error
neighbours: other
loss: lost fall
lost: down
""".strip().splitlines()
    )
}

# Chinese: what a statement with the first word also says.
IMPLIED_ZH = {
    word: tuple(given.split())
    for word, _, given in (
        row.partition("：")
        for row in """
降频：降低 降低了 时钟 变慢 减速 自动 自动降低 慢 被硬件
掉线：丢失 脱落
热：过热 太热 高温
响应：没有响应 无响应 不再响应 停止响应 卡死 返回 没有返回
非法：非法操作 执行 执行了 操作
文件系统：存储 程序 相关程序
不足：不够 缺少 耗尽 太小 过小
过小：太小 不足 容量 只有
提供：分配 增大
更久：退出 退出后仍 启动器退出 仍然存在 存在
启动器：退出
占用：持有 占着 占用着
持有：占用 占用着
占着：占用 占用着 持有
排空：作业 正在运行 运行
运行中：作业 正在运行 排空
限制：拖慢 变慢 作业 受限
拖：拖慢 限制 作业
更多：不少于 至少
或更：不少于 至少
设为：打开 开启 启用 设为
等待：空闲等待 卡住 卡在 程序
卡：卡在 卡住 挂起 没有返回
挂起：卡在 卡住 没有返回 返回
修复：重映射 显存修复
重映射：修复
查看：检查
检查：查看
无济于事：没有用 没用 无用
制动：变慢 降频
慢：变慢
消失：不在
辅助：供电
供电：电源
掉电：缺少 失去
传输：传输
终止：停止 结束
停止：终止 结束
遏制：限制 控制
处于：运行
应用：应用程序 程序
空闲：空闲等待 只能等待 等待
极低：很低 低
来自：发出 发出了
限流：限制 变慢 拖慢 作业
缺失：缺少 失去 没有
上的进程：占用 持有
程序：程序
""".strip().splitlines()
    )
}
