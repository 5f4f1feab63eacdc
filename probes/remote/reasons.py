"""What ssh, srun and kubectl print when a machine cannot be reached, what it means, and what to do about it."""

from __future__ import annotations

from knowledge.language import Text

# What is looked for in what was said (one line above each pattern as it is printed), what it means, what to do about it.
SSH = (
    # @    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
    # Host key for [127.0.0.1]:2222 has changed and you have requested strict checking.
    (r"REMOTE HOST IDENTIFICATION HAS CHANGED|Host key for .* has changed",
     Text("the host key of {target} is not the one that is known: it was installed anew, or something else answers in its place", "{target} 的主机密钥与已知的不同：该机可能已重装，或有其他机器冒用其地址"),
     Text("ask who runs the machine; if it was installed anew: ssh-keygen -R {known}, then add the new key after comparing its fingerprint", "请向机器管理员确认；若确已重装：运行 ssh-keygen -R {known}，核对指纹后再加入新密钥")),
    # Host key for 10.0.0.1 was revoked and you have requested strict checking.
    (r"was revoked|REVOKED HOST KEY",
     Text("the host key of {target} is revoked", "{target} 的主机密钥已被吊销"),
     Text("it must not be trusted: ask who runs the machine", "不可信任：请向机器管理员确认")),
    # No ED25519 host key is known for 127.0.0.1 and you have requested strict checking.
    # Host key verification failed.
    (r"host key is known for|Host key verification failed",
     Text("the host key of {target} is not known here, and unknown keys are never accepted", "本机没有 {target} 的主机密钥，且从不接受未知密钥"),
     Text("log in once with ssh and compare the fingerprint, or have the key put into /etc/ssh/ssh_known_hosts", "先用 ssh 登录一次并核对指纹，或请管理员将密钥写入 /etc/ssh/ssh_known_hosts")),
    # ssh: Could not resolve hostname gpu-99: Name or service not known
    (r"Could not resolve hostname",
     Text("{target} has no address: its name is not known here", "{target} 没有地址：本机无法解析该名称"),
     Text('mend the name, or give the address: address = "..." in the inventory', '请更正名称，或在清单中给出地址：address = "..."')),
    # ssh: connect to host 10.0.0.1 port 22: Connection refused
    (r"Connection refused",
     Text("{target} refuses connections: no ssh server listens there", "{target} 拒绝连接：该处没有 ssh 服务监听"),
     Text("is sshd running, and is the port right?", "sshd 是否在运行？端口是否正确？")),
    # ssh: connect to host 10.0.0.1 port 22: Connection timed out
    # Connection timed out during banner exchange
    (r"timed out",
     Text("{target} did not answer in {timeout:g} s", "{target} 在 {timeout:g} 秒内没有应答"),
     Text("is the machine up, and does a firewall let ssh through?", "机器是否开机？防火墙是否放行 ssh？")),
    # ssh: connect to host 10.0.0.1 port 22: No route to host
    (r"No route to host|Network is unreachable",
     Text("there is no way to {target}: {line}", "没有到 {target} 的路由：{line}"),
     Text("is the machine up, and the network between?", "机器是否开机？两者之间的网络是否正常？")),
    # root@10.0.0.1: Permission denied (publickey,password).
    (r"Permission denied \(|Too many authentication failures|Authentication failed",
     Text("{target} does not let this user in: {line}", "{target} 不允许该用户登录：{line}"),
     Text('a key that needs no password is wanted: ssh-add, or identity = "..." and user = "..." in the inventory', '需要无需口令的密钥：运行 ssh-add，或在清单中设置 identity = "..." 和 user = "..."')),
    # This account is currently not available.
    (r"account is currently not available|nologin",
     Text("this user may not run commands on {target}", "该用户无权在 {target} 上运行命令"),
     Text('name another: user = "..."', '请换一个用户：user = "..."')),
    # Connection closed by 10.0.0.1 port 22
    # kex_exchange_identification: read: Connection reset by peer
    # Connection closed by UNKNOWN port 65535
    (r"Connection closed by|Connection reset|kex_exchange_identification",
     Text("{target} closed the connection before anybody could log in: {line}", "{target} 在登录之前就关闭了连接：{line}"),
     Text("its sshd may be overloaded, or may not want this address", "其 sshd 可能过载，或拒绝来自本机地址的连接")),
    # Bad owner or permissions on /root/.ssh/config
    (r"Bad owner or permissions|Bad configuration option|Can't open user config file",
     Text("ssh cannot use its settings: {line}", "ssh 无法使用其配置：{line}"),
     Text("mend that file", "请修正该文件")),
    # Unable to negotiate with 10.0.0.1 port 22: no matching host key type found. Their offer: ssh-rsa
    (r"Unable to negotiate",
     Text("ssh here and on {target} have no method in common: {line}", "本机的 ssh 与 {target} 没有共同支持的算法：{line}"),
     Text("allow it for this host in ~/.ssh/config", "在 ~/.ssh/config 中为该主机启用相应算法")),
)  # fmt: skip
SLURM = (
    # srun: error: Unable to allocate resources: Invalid node name specified
    (r"Invalid node name",
     Text("Slurm knows no node {target}", "Slurm 中没有节点 {target}"),
     Text("sinfo -N lists the nodes", "sinfo -N 可列出节点")),
    # srun: error: Unable to allocate resources: Requested node configuration is not available
    (r"node configuration is not available|[Rr]equired node not available|Nodes required for job are DOWN",
     Text("Slurm does not give {target} out: {line}", "Slurm 不分配 {target}：{line}"),
     Text('sinfo -R says why: it may be down or drained; use ssh, or partition = "..."', 'sinfo -R 可查看原因：可能已 down 或 drain；可改用 ssh，或设置 partition = "..."')),
    # srun: error: Unable to allocate resources: Immediate allocation impossible, insufficient resources
    # srun: Unable to allocate resources: ... Connection timed out ... / job allocation expired
    (r"Immediate allocation|insufficient priority|Requested nodes are busy|Job allocation .* has been revoked",
     Text("{target} is busy: Slurm could give nothing of it out within {timeout:g} s", "{target} 正忙：Slurm 在 {timeout:g} 秒内无法分配其任何资源"),
     Text('name a job of yours that runs there (job = "..."), or use ssh', '指定一个正在该节点运行的自己的作业（job = "..."），或改用 ssh')),
    # srun: error: Unable to allocate resources: Invalid partition name specified
    (r"[Ii]nvalid partition|[Ii]nvalid account|account/partition combination",
     Text("Slurm does not accept the partition or the account: {line}", "Slurm 不接受该分区或账户：{line}"),
     Text("sinfo -s lists partitions, sacctmgr show assoc user=$USER the accounts", "sinfo -s 列出分区，sacctmgr show assoc user=$USER 列出账户")),
    # srun: error: Unable to allocate resources: Unable to contact slurm controller (connect failure)
    (r"[Uu]nable to contact slurm controller|fetch_config|configuration source|Unable to process configuration",
     Text("Slurm cannot be asked from here: {line}", "无法从本机访问 Slurm：{line}"),
     Text("is this a login node, and is slurmctld running?", "本机是否为登录节点？slurmctld 是否在运行？")),
    # srun: error: Task launch for StepId=1.0 failed on node gpu01: Communication connection failure
    (r"Task launch .* failed|Communication connection failure|Application launch failed",
     Text("Slurm could start nothing on {target}: {line}", "Slurm 无法在 {target} 上启动任何程序：{line}"),
     Text("is slurmd running there? scontrol show node {target}", "该节点的 slurmd 是否在运行？可用 scontrol show node {target} 查看")),
    # srun: error: Unable to create step for job 12: Invalid job id specified
    (r"Invalid job id|already completing or completed",
     Text("Slurm does not take the job: {line}", "Slurm 不接受该作业：{line}"),
     Text("squeue -w {target} lists the jobs there", "squeue -w {target} 列出该节点上的作业")),
    # slurmstepd: error: execve(): python3: No such file or directory
    (r"execve\(\).*No such file",
     Text("there is no {python} on {target}", "{target} 上没有 {python}"),
     Text('name one that is there: python = "/usr/bin/python3.9"', '请指定该机上已有的解释器：python = "/usr/bin/python3.9"')),
)  # fmt: skip
KUBERNETES = (
    # ... exec failed: unable to start container process: exec: "python3": executable file not found in $PATH: unknown
    (r"executable file not found|no such file or directory",
     Text("there is no {python} in the pod on {target}", "{target} 上的 pod 中没有 {python}"),
     Text('the image needs a Python 3: another pod, or python = "..."', '镜像中需有 Python 3：请换一个 pod，或设置 python = "..."')),
    # Error from server (NotFound): pods "gpudiag-x" not found
    (r"NotFound",
     Text("Kubernetes knows no such thing: {line}", "Kubernetes 中没有该对象：{line}"),
     Text("kubectl get pods -o wide --all-namespaces lists the pods and their nodes", "kubectl get pods -o wide --all-namespaces 列出 pod 及其所在节点")),
    # Error from server (Forbidden): pods "x" is forbidden: User "me" cannot create resource "pods/exec" in API group "" ...
    (r"Forbidden|forbidden",
     Text("Kubernetes does not allow it: {line}", "Kubernetes 不允许此操作：{line}"),
     Text("the role needs get on pods and create on pods/exec", "该角色需要 pods 的 get 权限和 pods/exec 的 create 权限")),
    # error: You must be logged in to the server (Unauthorized)
    (r"Unauthorized|must be logged in|getting credentials",
     Text("Kubernetes does not know who asks: {line}", "Kubernetes 无法识别访问者身份：{line}"),
     Text("log in again, as for any kubectl command", "请重新登录，与使用其他 kubectl 命令时相同")),
    # error: unable to upgrade connection: container not found ("main")
    # Error from server (BadRequest): container x is not valid for pod y
    (r"container not found|container \S+ is not valid|container \S+ not found",
     Text("the pod has no such running container: {line}", "该 pod 中没有这个正在运行的容器：{line}"),
     Text('container = "..." names one', '用 container = "..." 指定容器')),
    # error: cannot exec into a container in a completed pod; current phase is Succeeded
    # error: pod x does not have a host assigned
    # error: timed out waiting for the condition  (--pod-running-timeout)
    (r"completed pod|does not have a host assigned|is not running|waiting for the condition|current phase",
     Text("the pod does not run: {line}", "该 pod 未在运行：{line}"),
     Text("kubectl get pod {pod} says what keeps it", "kubectl get pod {pod} 可查看原因")),
    # error: context "x" does not exist
    (r"context .* does not exist|no context exists|cluster .* does not exist",
     Text("kubectl has no such context: {line}", "kubectl 没有这个 context：{line}"),
     Text("kubectl config get-contexts lists them", "kubectl config get-contexts 可列出全部 context")),
    # The connection to the server localhost:8080 was refused - did you specify the right host or port?
    # Unable to connect to the server: dial tcp: lookup x: no such host
    (r"connection to the server|Unable to connect to the server|no configuration has been provided|i/o timeout",
     Text("the API server cannot be reached: {line}", "无法连接 API server：{line}"),
     Text("kubectl cluster-info shows what kubectl makes of its settings", "kubectl cluster-info 可查看 kubectl 如何解读其配置")),
)  # fmt: skip
ANY = (
    # sudo: a password is required
    (r"sudo: .*(password is required|terminal is required|not in the sudoers|may not run)",
     Text("sudo on {target} wants a password: {line}", "{target} 上的 sudo 需要口令：{line}"),
     Text("allow it in sudoers without one (NOPASSWD), or leave sudo out: what needs root is then said to be denied", "在 sudoers 中设为免口令（NOPASSWD），或不使用 sudo：需要 root 的内容将标明无权读取")),
    # bash: line 1: python3: command not found
    # sh: 1: exec: python3: not found
    # python3: Command not found.   (csh)
    (r"command not found|Command not found|: not found|No such file or directory|Unknown command",
     Text("there is no {python} on {target}", "{target} 上没有 {python}"),
     Text('name one that is there: python = "/usr/bin/python3.9" in the inventory (RHEL 8: /usr/libexec/platform-python)', '请在清单中指定该机上已有的解释器：python = "/usr/bin/python3.9"（RHEL 8：/usr/libexec/platform-python）')),
    # Unknown option: -I        (Python 2)
    (r"Unknown option: -I|SyntaxError|has no attribute 'buffer'",
     Text("{python} on {target} is too old", "{target} 上的 {python} 版本过旧"),
     Text('3.6 or newer is needed: python = "..." names another', '需要 3.6 或更新版本：用 python = "..." 指定其他解释器')),
    # -I -S -B -X utf8 -c import sys,zlib;...       (a program that prints what it was given)
    (r"-I -S -B -X utf8 -c",
     Text("{python} on {target} is no Python", "{target} 上的 {python} 不是 Python"),
     Text('python = "..." names another interpreter', '用 python = "..." 指定其他解释器')),
    # ModuleNotFoundError: No module named 'zlib'
    (r"No module named",
     Text("{python} on {target} lacks a part of its standard library: {line}", "{target} 上的 {python} 缺少部分标准库：{line}"),
     Text('python = "..." names another interpreter', '用 python = "..." 指定其他解释器')),
    # -rbash: /usr/bin/python3: restricted: cannot specify `/' in command names
    (r"restricted",
     Text("this user may not run commands on {target}: {line}", "该用户无权在 {target} 上运行命令：{line}"),
     Text('name another: user = "..."', '请换一个用户：user = "..."')),
)  # fmt: skip
ALONE = (  # where it is the only line
    # srun: error: gpu01: task 0: Exited with exit code 2
    # What slurmstepd says of execve (ENOENT is 2) gets lost on a busy node; an interpreter would have said what it lacks.
    (r"^srun: error: \S+ task 0: Exited with exit code 2$",
     Text("nothing could be started; probably there is no {python} on {target}", "无法启动程序；{target} 上很可能没有 {python}"),
     Text('name one that is there: python = "/usr/bin/python3.9"', '请指定该机上已有的解释器：python = "/usr/bin/python3.9"')),
)  # fmt: skip
