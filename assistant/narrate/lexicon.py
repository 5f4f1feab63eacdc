"""The closed lists of words that a narration may use whatever it is about, and those that stand under a rule of their own.

Nothing here names a part, a fault or a deed: such words come from the cited findings alone. The lists hold dictionary forms;
`assistant.narrate.wording.stem` brings both sides to one.
"""

# ruff: noqa: SIM905
from __future__ import annotations

# Words that only hold a sentence together. Negations, hedges, verdicts and causes have lists of their own.
FUNCTION = frozenset(
    """
a an the this that these those it its itself they them their theirs themselves he she we us our you your i who whom whose which what
where when while whereas whenever wherever why how and or but nor yet so if then than as at by for from in into of off on onto out over
to upon with within about above across after against along alongside among around before behind below beneath beside besides between
beyond during except inside near outside since through throughout toward towards under until till via whether though although even
also too both either each every all any some such same other others another own most more less least few fewer many much several enough
only just still already again once ever now here there today later soon meanwhile meantime further furthermore moreover however otherwise
instead rather quite very almost nearly mainly mostly partly fully entirely first firstly next last lastly finally afterwards afterward
because therefore thus hence accordingly consequently is are was were be been being am has have had having do does did done doing can
could will would shall should may might must need needs needed let lets please namely respectively together overall far well per like
despite once always hereby thereby therein thereof whatever whichever whoever however anything everything everyone somebody something
someone
""".split()
)

# Harmless words of telling: seeing, saying, showing, lasting, belonging.
NARRATIVE = frozenset(
    """
account action add affect agree amount appear apply area ask assume aspect attention available back base basis become begin behaviour
behavior belong bring brought call carry case certain chain change check circumstance clear close combine come common compare complete
concern condition confirm connect consider consist consistent contain continue correspond count cover current describe detail detect
determine device differ different direct display early easily effect else end entry ensure entire event evidence exact exist expect
explain fact fall fallout find finding follow following-up general get give given go group happen hardware help high hold
identify impact imply important include indicate individual information instance involve item job keep kind know last late lead leave level
line list local log long look machine make mark match matter mean measure meantime mention message moment monitor narrow node note
notice number observe occasion occur operate operation operator order origin original output overview part particular path period picture piece
place plan point position present previous print problem produce provide put question range reach read reading real recent record recover refer regard
related relate remain remaining report require respond response rest result same say see seem seen separate sequence series session set
show side sign signal similar simple single sit situation small stage stand start state statement stay step stop subject suffer
summary support system take talk team tell term thing time total turn type unit use usual value various view watch way work
write written yield gpu card accelerator machine server node log report fault issue trouble failure error symptom cause reason root
source problem finding incident diagnosis observation overall whole high low large little good new old whole mere merely simply
accordingly actual actually additionally apart appear briefly closely commonly currently directly earlier especially exactly generally
immediately indeed initially lately merely namely normally notably originally particularly previously purely recently
separately shortly similarly specifically suddenly temporarily ultimately usually attribute chance consequence consequently context
continue demand downstream effect engineer expectation experience final flag fresh gradually hint human investigation involve
keep list manager meaningful mind minor near network-wide note nothing-else obvious ongoing operator outcome overall own page people person
program programs application running service stem surface table team today touch trace track trigger upstream user visible
worth victim echo recur rule care wait process fix became serve up down active neighbour neighbor tool training workload assert prepare longer extent aftermath secondary primary knock-on direct indirect side-effect begin began saw
""".split()
)

# Parts, faults and deeds that the list above must never hold by accident: the source of the cited finding or nothing.
NEVER = frozenset({"hardware", "program", "application", "signal", "network", "recover"})

NEGATIONS = frozenset(
    "not no never without neither nor none cannot nothing nobody nowhere unable hardly barely non lack lacks isnt".split()
)
HEDGES = frozenset(
    """
may might could can likely probably possibly perhaps maybe suggest suggests appear appears seem seems potentially presumably usually
usual often typically typical sometimes possible probable likelihood mostly almost point points hint hints suspect suspected should
""".split()
)
STRONG_HEDGES = HEDGES - {"can", "should", "almost", "mostly", "point", "points"} | {"points to", "point to"}
CERTAIN = frozenset(
    """
certain certainly definite definitely sure surely undoubtedly clearly clear proven prove proves proof confirm confirmed confirms obviously
evidently unquestionably absolutely guaranteed guarantee undeniably
""".split()
)
NUMBERS = frozenset(
    """
one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty
forty fifty sixty seventy eighty ninety hundred hundreds thousand thousands million billion trillion dozen dozens half halves third thirds
quarter quarters twice thrice double doubled triple tripled quadruple pair couple second seconds fourth fifth sixth seventh eighth ninth tenth zero
percent percentage minute minutes hour hours day days week weeks month months year years millisecond milliseconds degree degrees kilo
mega giga tera halved doubles halves score several-fold tenfold twofold
""".split()
)
# Deeds. Each must stand among the action words of a cited finding; elsewhere only where the finding's own text says it.
DEEDS = frozenset(
    """
stop reboot restart reset drain replace update upgrade downgrade install uninstall reinstall remove delete kill terminate run execute
disable enable unplug plug reseat power flash contact open return swap move clean set increase decrease raise lower
cordon uncordon reload unload load switch reschedule migrate evict shut shutdown format wipe erase patch rollback resubmit cancel rerun
exchange repair fix tune configure adjust drop launch send mail email phone order buy rma escalate isolate quarantine inform ssh
login export copy paste download visit click attach detach mount unmount rename edit touch clear ignore skip
""".split()
)
ADVISING = frozenset(
    "should must need needs please recommend recommended advise advised ought require requires required".split()
)
# Words of a verdict: what they say must be what the verdict above says.
WELL = frozenset(
    "healthy usable safe safely fine ok okay ready normal normally good use used using unaffected stable operational".split()
)
ILL = frozenset("unusable unhealthy unsafe dead broken defective faulty bricked ruined worn".split())

# --- Chinese ------------------------------------------------------------------------------

ZH_WORDS = frozenset("""
的 了 着 过 在 于 是 有 和 与 及 或 而 且 也 都 还 就 又 并 则 即 但 只 仅 已 正 被 把 将 为 以 从 到 至 由 对 向 其 它 该 此 这 那 各 每 某 请 需 应 可 会 后 前
中 上 下 里 内 时 间 等 之 所 地 得 很 更 最 再 自 同 使 让 给 用 看 见 出 起 来 去 做 作 成 无需
它们 其中 其他 其余 这些 那些 这个 那个 该节点 以及 或者 而且 并且 但是 不过 然而 同时 此外 另外 然后 随后 接着 之后 之前 以后 以前 以来 目前 现在 当前 仍然 仍 依然
已经 曾经 曾 正在 一直 一旦 一些 一致 进一步 统一 首先 其次 最后 最终 最近 同样 也是 就是 即可 只是 仅仅 只有 只要 如果 若 则是 时候 期间 当时 此时 届时 自此 为止 这表明 表明 表示 显示 说明 指出 可见
看到 发现 检测 检测到 观察 观察到 记录 记录了 报告 报告了 报出 出现 发生 存在 属于 处于 位于 来看 看来 情况 状态 状况 问题 现象 症状 结果 后果 影响 受影响 相关 有关 关于 对于 根据 按照 依据 通过
需要 应当 应该 建议 务必 必须 可以 能够 能 可能 或许 也许 似乎 疑似 大概 通常 往往 一般 常见 多半 很可能 有可能
原因 根本 根源 根因 起因 因此 因而 所以 由于 因为 导致 引起 引发 造成 解释 源于 来自 从而 以致 使得 所致 连带
继续 恢复 保持 开始 结束 完成 进行 采取 处理 操作 措施 动作 步骤 检查 查看 确认 核对 联系 关注 观察 监控 等待 准备 负责 团队 人员 用户 运维 工程师 管理
节点 机器 设备 作业 任务 训练 系统 日志 消息 证据 结论 发现 信息 数据项 读数 时间 时刻 次 个 块 条 台 处 种 类 项 些 方面 部分 整体 全部 所有 任何 本身 自身 自己 另 另外 其它 总共 共 合计 共计 达到 达 为止 左右 左 右 约
虽然 尽管 却 反而 直到 直至 之间 以内 当中 那么 例如 比如 包括 其次 分别 如下 上述 以上 以下 上面 下面 上方 不过 只能 才 才能 更多 较 较低 较高 较多 明显 逐渐 随之 随即 立即 尽快 及时 先 再次 重新 反复 多次 多 少 大 小 高 低 长 短 新 旧 好
可见 得到 得知 没有 出在 处在 变 变得 变为 变慢 表现 表现为 带来 涉及 受 受到 遭 遭到 因 按 经 经过 称为 即为 作为 成为 视为 属 系 便 均 亦 故 称 指 指向 说 表 示 如 像 当 至今 自 起 止 只 之一 本 记录为 记为 报 叫做 占用着 着手 分配 驱动记录 驱动报告 驱动在
事件 事故 故障 错误 失败 异常
""".split()) - frozenset("一 二 三 四 五 六 七 八 九 十 百 千 万 亿 两 半 双".split())  # fmt: skip
ZH_NUMBERS = frozenset("零〇一二三四五六七八九十百千万亿两半双俩仨廿")
ZH_NEGATIONS = frozenset("不没无未非别勿莫否")
ZH_SAME = (
    ("应答", "响应"),
    ("回应", "响应"),
    ("限额", "限制"),
    ("功率上限", "功率封顶"),
    ("最大值", "最高值"),
    ("频率", "时钟"),
    ("power brake", "电源制动"),
    ("batch", "批次"),
    ("kernel", "内核"),
    ("launcher", "启动器"),
    ("供电制动", "电源制动"),
)  # one meaning, two words
ZH_PLAIN = (
    "不过",
    "不仅",
    "不但",
    "不只",
    "除非",
    "无论",
    "不论",
    "不久",
    "不同",
    "不足",
    "不少于",
    "非常",
)  # no negation of what follows
ZH_HEDGES = (
    "可能",
    "或许",
    "也许",
    "似乎",
    "疑似",
    "大概",
    "通常",
    "往往",
    "一般",
    "常见",
    "多半",
    "可疑",
    "几乎",
    "怀疑",
    "应该是",
)
ZH_CERTAIN = ("确认", "确定", "肯定", "必然", "一定", "显然", "证实", "无疑", "毫无疑问", "确凿", "明确", "势必")
ZH_DEEDS = (
    "重启", "复位", "重置", "排空", "更换", "替换", "更新", "升级", "降级", "安装", "卸载", "重装", "删除", "移除", "终止", "杀掉", "杀死", "运行命令", "执行", "禁用", "停用",
    "启用", "拔出", "插拔", "重新插拔", "断电", "刷写", "联系", "打开", "返修", "退回", "交换", "迁移", "迁走", "清洁", "设置", "设为", "提高", "增大", "降低", "调低", "调高", "隔离",
    "封锁", "重载", "加载", "关机", "格式化", "清除", "回滚", "重新提交", "取消", "维修", "修复", "调整", "配置", "通知", "导出", "复制", "下载", "点击", "访问", "卸下", "挂载", "编辑", "忽略", "跳过",
    "关闭", "停止", "换掉", "报修", "送修",
)  # fmt: skip
ZH_ADVISING = ("请", "应", "需", "必须", "建议", "务必", "要", "得先")
ZH_WELL = (
    "可用",
    "可以使用",
    "继续使用",
    "健康",
    "正常",
    "安全",
    "良好",
    "完好",
    "没有问题",
    "无问题",
    "就绪",
    "可以用",
)
ZH_ILL = ("报废", "损坏", "已死", "坏了", "不健康", "有缺陷")
