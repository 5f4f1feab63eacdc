"""Which advice a sentence of busy, slow, held and wasted GPUs asks for: by what it tells, in any order and in both languages.

"NVLink is saturated but compute is at 10 %", 没有进程但利用率显示 100%: each mark stands for the words of both languages, so
that what one knows the other knows. What a value decides is left to the readings and the rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from assistant.intent.advised import Asked
from knowledge.advice import Told, advice
from knowledge.gpus import all_specs, candidates
from knowledge.lazy import lazy

_LONG = 240  # characters: who asks so says little else
_NEAR = 0.05  # of a board's design power: who says 700 W of an H100 says that it is at its limit


def _words(english: str, chinese: str) -> re.Pattern[str]:
    """Whole English words, or Chinese ones anywhere."""
    return lazy(rf"(?<![a-z])(?:{english})(?![a-z])|{chinese}", re.IGNORECASE)


_NEVER = "(?!)"
_MARKS: dict[str, re.Pattern[str]] = {
    # what it is about
    "utilization": _words(
        r"(?:gpu[- ])?util(?:i[sz]ation)?|usage|busy|(?:nvidia-?smi|nvtop|dashboard|grafana) (?:shows?|says?|reports?|displays?)",
        "(?:nvidia-?smi|nvtop|监控)[^，。]{0,3}显示|利用率|使用率|占用率|GPU-Util|忙",
    ),
    "memory": _words(r"memory|vram|\d+\s?gi?b", "显存|内存"),
    "tensor": _words(r"tensor(?: cores?)?", "张量核"),
    "counter": _words(r"sm[- _]?active|dram|tensor|occupancy", "活跃度"),
    "sm-active": _words(r"sms?[- _]?(?:active|activity|util\w*)", "SM\\s?(?:活跃|利用|active)"),
    "dram": _words(r"dram|hbm|bandwidth", "带宽"),
    "fp64": _words(r"fp[- ]?64|double[- ]precision|float64|dgemm|doubles", "双精度"),
    "mig": _words(r"mig|[1-7]g\.\d+gb", "切片"),
    "nvlink": _words(r"nv[- ]?links?|nvswitch", _NEVER),
    "pcie": _words(r"pci-?e?(?: bus)?", _NEVER),
    "compute": _words(
        r"compute|computing|math|flops|mfu|tensor(?: cores?)?|sms?|throughput|performance|training|speed",
        "算力|计算|吞吐|性能|训练|速度",
    ),
    "power": _words(r"power|watts?|draws?|drawing|wattage|tdp|pulls?|pulling", "功耗|功率"),
    "watts": _words(r"[0-9]{2,4}(?:\.[0-9]+)?\s?(?:w|watts?)", r"[0-9]\s?瓦"),
    "occupancy": _words(r"occupancy", "占用度"),
    "decode": _words(
        r"decod(?:e|es|ing)|token generation|generation phase|vllm|sglang|llm (?:inference|serving)",
        "解码|生成阶段|大模型推理",
    ),
    "notebook": _words(r"notebooks?|jupyter(?:lab|hub)?|ipython|ipykernel", "笔记本"),
    "job": _words(
        r"tok(?:en)?s?/s(?:ec)?|tokens per second|throughput|training|trains?|steps?|step time|it/s|samples/s|iterations?|jobs?|runs?|inference|everything",
        "训练|吞吐|速度|每步|步时|推理|任务|作业",
    ),
    "software-power-cap": _words(
        r"sw[- _]?power[- _]?cap(?:ping)?|software power cap(?:ping)?|sw_power_cap", "软件功[率耗](?:上限|封顶|限制)"
    ),
    "others": _words(r"others?|rest|peers|remaining|neighbou?rs", "其[他它余]|别人|别的|另外"),
    "one": _words(
        r"one (?:of (?:the|our|my|these|its|\w+)|gpu|card|rank)|(?:a|1) single (?:gpu|card|rank)|only one|one",
        "[一1]\\s?[张块个台]|单卡|单张|有张卡|某张",
    ),
    "gpu-by-number": _words(r"(?:gpu|card|rank|device)\s?#?[0-9]+", r"[0-9]+\s?号卡"),
    "sm-number": _words(r"sm[- _]?(?:active|activity|util\w*)?\s?(?:is|at|of|only|just|=|:)?\s?[0-9.]+\s?%?", _NEVER),
    # how it is
    "full": _words(
        r"(?<![0-9.])(?:100|9[5-9])\s?%?|full(?:y)?|saturat\w*|maxe?d(?: out)?|pegged|exhausted|at (?:its|the|their) (?:limit|peak|max\w*)|at line rate",
        "(?<![0-9.])(?:100|9[5-9])(?![0-9.])|打满|跑满|拉满|吃满|占满|顶满|爆满|满了|满载|满的|到顶|饱和|全满|很忙",
    ),
    "little": _words(
        r"low|little|only|just|barely|poor|weak|idle|tiny|starv\w*|bad|(?<![0-9.])(?:[0-3]?[0-9])\s?%|(?<![0-9])0?\.[0-3][0-9]*|not (?:going|moving|scal\w*|improv\w*|going up|increas\w*|any faster)|doesn'?t (?:go up|increase|scale|improve|move)|stuck|nothing",
        "(?<![0-9.])[0-3]?[0-9]\\s?%|才|只有|仅|不到|很?低|很?少|没上去|上不去|没起来|提不上|起不来|不高|空闲|闲|没涨|不涨|没怎么|很慢",
    ),
    "nothing": _words(
        r"zero|idle|unused|nothing|none|empty|no (?:activity|use)|(?:is|are|at|=|only|shows?|reads?|with|tensor(?: cores?| active)?)\s?0(?:\.0+)?\s?%?|not (?:used|active|busy)|never (?:used|active)|inactive",
        "(?<![0-9.])0(?![0-9.])|零|空|没用|没在用|不动|没有?活动|没动|不工作",
    ),
    "less": _words(
        r"half|halved|less|lower|fewer|low|lowest|only (?:a )?(?:third|quarter|half)|[1-6]?[0-9]\s?%|below",
        "一半|减半|更?低|更?少|不到|才|三分之一|[1-6]?[0-9]\\s?%|五成|四成|六成",
    ),
    "slower": _words(
        r"slow(?:er|ed|ing)?(?: down)?|halved|half(?: as fast| of what| the speed)?|dropp?ed|fell|fallen|lost|regress\w*|degraded|worse|takes? (?:twice|longer|[0-9.]+x)|down (?:by )?[0-9]+\s?%",
        "慢|掉了|下降|降了|减半|跌了|变差|变长",
    ),
    "slow": _words(r"slow\w*|crawl\w*", "慢"),
    "down": _words(
        r"down|inactive|missing|error\w*|degraded|x[1248]|gen ?[12]|crc|broken|replay\w*", "断|掉|降速|错误|降到|丢"
    ),
    "forward-compatibility": _words(r"forward[- ]compatib\w+|cuda[- ]?compat|compat_not_supported\w*", "前向兼容"),
    "not-supported": _words(r"non[- ]?supported|not supported|unsupported|(?:was )?attempted|804", "不支持|不允许"),
    "shows": _words(r"shows?|showing|active|on|is|are|have|has|lists?|reports?", "显示|激活|活跃|触发|出现|有|亮"),
    "fan-full": _words(
        r"fans?[^,.;]{0,24}(?:100\s?%?|full (?:speed|blast|tilt|throttle)|max\w*|flat out|screaming|roaring)(?![0-9])",
        r"风扇[^，。]{0,12}(?:100(?![0-9])|全速|满速|满转|狂转|拉满|最高)",
    ),
    "cool": _words(
        r"(?<![0-9.])[1-5][0-9]\s?(?:°?c|deg\w*)|cool|cold|not hot|idle|idling|nothing (?:is )?running|no load|(?<![0-9.])0\s?%\s?util\w*|util\w*\s?(?:is |at |of )?0\s?%?(?![0-9.])",
        r"(?<![0-9.])[1-5][0-9]\s?度|不热|不高|凉|空闲|闲着|空载|没任务|没跑|利用率[^，。0-9]{0,4}0(?![0-9.])",
    ),
    "warm-degrees": _words(
        r"(?<![0-9.])(?:[6-9][0-9]|1[0-9]{2})\s?(?:°?c|deg\w*)", r"(?<![0-9.])(?:[6-9][0-9]|1[0-9]{2})\s?度"
    ),
    "two-degrees": _words(  # readings that are judged
        r"(?<![0-9.])[1-9][0-9]{1,2}\s?(?:°?c|deg\w*)[^;?]{1,40}?(?<![0-9.])[1-9][0-9]{1,2}\s?(?:°?c|deg\w*)",
        r"[1-9][0-9]{1,2}\s?(?:度|°c|℃)[^；？]{1,30}?(?<![0-9.])[1-9][0-9]{1,2}\s?(?:度|°c|℃)",
    ),
    "coolant": _words(
        r"coolant|(?:facility|supply|inlet|return|chilled|cooling|process|warm) water|water (?:inlet|supply|temp\w*|loop)|liquid (?:line|loop|inlet|supply|return|temp\w*)|(?:liquid|water)[- ]cooled|dlc|direct liquid cooling|cdu|cold ?plates?",
        "冷却液|冷却水|供水|进水|出水|回水|水温|冷板|液冷|水冷",
    ),
    "coolant-degrees": _words(
        r"(?<![0-9.])(?:[1-7][0-9])(?:\.[0-9])?\s?(?:°\s?c|c|deg\w*)", r"(?<![0-9.])[1-7][0-9]\s?(?:度|°|℃|[cC])"
    ),
    "hotspot": _words(r"hot ?-?spots?(?: temp\w*)?", "热点"),
    "amd-card": _words(r"amd|mi[0-9]{3}x?|radeon|rocm|instinct|rx ?[0-9]{4}", _NEVER),
    "geforce-card": _words(r"(?:rtx|geforce|gtx)?\s?(?:[2-5]0[5-9]0)(?:\s?(?:ti|super))?s?|geforce", _NEVER),
    "limit-asked": _words(
        r"limit|max\w*|target|at (?:what|which) temp\w*|throttl\w*[^.;?]{0,30}(?:limit|normal|already|expected|supposed)",
        "上限|最高|目标|多少度降频",
    ),
    "megahertz": _words(r"[0-9]\s?[mg]hz", r"[0-9]\s?兆"),
    "hot": _words(r"hot|heat|thermal\w*|temperature|[89][0-9]\s?°?c|hw[- _]\w+", "过热|温度|散热|[0-9]\\s?度"),
    "idle": _words(
        r"idle|idling|unused|doing nothing|does nothing|do nothing|not (?:being )?used|never (?:used|ran|run|worked)|never (?:went|goes|go|got|been|gone|exceed\w*|above|over)[^.,;?]{0,16}?[0-9]\s?%|(?:under|below|less than|at|around|of) [0-9]\s?%|(?:util\w*|usage) (?:is |at |of |only |was )*0|wast(?:e|ed|ing)|no one (?:is )?us(?:es|ing)",
        "闲|空着|没用|没在用|不用|没跑|没动|空转|没人用|浪费|(?:不到|低于|没超过|没到|不超过|只有)\\s?[0-9]\\s?%|[^0-9][0-9]\\s?%\\s?(?:以下|左右|不到|都不到)|一直是?\\s?0",
    ),
    "held-or-idle": _words(
        r"idle|idling|unused|doing nothing|do nothing|forgotten|abandoned|hold(?:s|ing)?|held|hog(?:s|ging)?|keep(?:s|ing)?|tak(?:es|ing)|occup(?:y|ies|ying)|sit(?:s|ting)?|leave|left|stale|memory|vram",
        "占|闲|不用|没用|不释放|不关|没关|显存|挂着|忘了",
    ),
    "allocated": _words(
        r"allocat(?:ed|ion|es)|reserv(?:ed|ation)|booked|requested|granted|assigned|hold(?:s|ing)?|held|got \d+ gpus|squat\w*|hog(?:s|ging)?",
        "申请|分配|占着|占了|预留|占用|霸占|领了|拿了",
    ),
    "before": _words(
        r"yesterday|last (?:week|night|month|friday|monday|weekend)|since (?:yesterday|last|this|the weekend|monday|tuesday|wednesday|thursday|friday|saturday|sunday)[a-z ]*|used to|than (?:before|it (?:was|used)|usual)|overnight|suddenly|out of nowhere|than (?:last|the day)",
        "昨[天晚日]|上周|上个?月|前[天几]|之前|以前|原来|突然|忽然|平时|往常|今早",
    ),
    "unchanged": _words(
        r"(?:no|nothing|not|never|didn'?t|haven'?t|hasn'?t|without)[^.,;]{0,16}?(?:chang\w*|touch\w*|modif\w*)|same (?:code|config|script|data|settings|model|everything|container|image)|unchanged",
        "没改|没动|没变|未改|代码没|没有?(?:修改|改动|变化)|(?:代码|配置|脚本|数据)[^，。]{0,4}(?:一样|相同)|啥也没",
    ),
    "no-process": _words(
        r"no (?:gpu )?(?:pids?|process(?:es)?|jobs?|programs?|tasks?|workloads?)(?: running| listed| shown)?|nothing (?:is )?(?:running|runs|listed|on it|there)|nobody (?:is )?(?:running|runs|using|uses|on it)|no one (?:is )?(?:running|using)|process (?:list|table) (?:is )?empty|without (?:any |a )?(?:process|job)\w*|0 process\w*",
        "没有?(?:任何|看到|显示)?(?:进程|任务|作业|程序)|无(?:任何)?(?:进程|任务)|没人(?:在)?[用跑]|进程(?:列表|表)?(?:是|为)?空|没在?跑(?:任务|东西|任何|程序|作业)|(?:什么|啥)都没[跑开]|没起任务|看不到(?:任何)?进程",
    ),
    "unseen": _words(
        r"n/?a|na|not (?:shown|showing|available|supported|visible|displayed)|does ?n[o']t show|no value|empty|blank|missing|how (?:do|can|to|would|should)|(?:see|read|measure|get|monitor|check|tell)|where",
        "N/A|看不到|看不见|没有|不显示|没显示|显示不|为空|空白|读不到|查不到|拿不到|怎么|如何|咋|哪里",
    ),
    "not-freed": _words(
        r"(?:not|never|n'?t) (?:get |been |being |be )?(?:freed?|released?|returned|given back|cleared|come back)|still (?:held|used|in use|allocated|occupied|full|taken)|stays? (?:held|allocated|used)|leftover|left over|free (?:up )?(?:the |that )?(?:gpu )?memory",
        "[没不未]有?(?:被)?(?:释放|清掉|清空|归还|降)|还占|占着|占用着|被占|残留|没清",
    ),
    "size": _words(r"[0-9]+(?:\.[0-9]+)?\s?[gm](?:i?b)?", _NEVER),
    "one-device": _words(
        r"(?:only|just) (?:(?:sees?|shows?|finds?|detects?|uses?|gets?|has|have|returns?|reports?) )?(?:1|one|a single)|(?:sees?|shows?|finds?|detects?|uses?|gets?) (?:only |just )?(?:1|one|a single)|device[_ ]count(?:\(\))?\s?(?:is|=+|returns?|shows?|says?|gives?)?\s?1",
        "只(?:能)?(?:有|看到|看得到|认到|识别到?|用|使用|见)(?:了|到|上)?\\s?[一1]\\s?[张块个]",
    ),
    "context-length": _words(
        r"max(?:imum)?[ _](?:seq(?:uence)?|model|context)[ _]len(?:gth)?|(?:context|sequence|model) (?:length|window|len)|seq(?:uence)? len(?:gth)?",
        "最大长度|上下文|序列长度",
    ),
    "kv-cache": _words(r"kv[- _]?caches?", _NEVER),
    "larger": _words(
        r"larger|bigger|greater|longer|exceeds?|more than|over|too (?:long|large|big|small)|(?:does not|doesn'?t|won'?t|not) fit|smaller|less than",
        "大于|超过|超出|放不下|装不下|太长|太小|不够|小于|更大",
    ),
    # whose accelerators, where they are none of NVIDIA's, and what is asked of them
    "ascend": _words(
        r"ascend\w*|npu-smi|npus?|(?:atlas|ascend)\s?[389]00[a-z0-9]*|(?<![0-9.])910[a-d][0-9]?|310p[0-9]?|cann|hccl|hccs|torch[_-]npu|mindspore|mindspeed|mindie",
        "昇腾|(?<![0-9.a-zA-Z])(?:910[A-Da-d][0-9]?|310[Pp])(?![0-9A-Za-z])|(?<![a-z])npu|Atlas",
    ),
    "moore-threads": _words(r"moore ?threads|mthreads(?:-gmi)?|mtt s[0-9]{2,4}|musa", "摩尔线程"),
    "other-maker": _words(
        r"hygon|hy-smi|dcus?|cambricon|cnmon|mlu ?[0-9]{3}|metax|mx-smi|iluvatar|ixsmi|enflame|biren|kunlun(?:xin)?|hanguang",
        "海光|寒武纪|思元|沐曦|曦云|天数智芯|天数|天垓|燧原|云燧|壁仞|昆仑芯|昆仑|平头哥|含光|DCU",
    ),
    "health-state": _words(
        r"(?<!no )(?<!no critical )(?<!without )(?:alarms?|critical)|health[^.,;!?，。]{0,16}?(?:(?:not|isn't) ok|unhealthy|abnormal|fault\w*|bad)",
        "(?<!没有)(?<!没)(?<!无)(?<!未见)告警|Health[^，。？?]{0,8}(?:不是|不为|非|异常|不正常)",
    ),
    "health-ok": _words(
        r"health[^.,;!?，。]{0,16}?(?<!not )(?:ok|okay|good|normal|healthy)",
        "Health[^，。不非？?]{0,8}?(?:OK|正常|健康)",
    ),
    "far-too-hot": _words(
        r"(?<![0-9.])(?:9[0-9]|1[0-9]{2})\s?(?:°?c|deg\w*)|(?:temp\w*|hot)[^.,;0-9]{0,8}(?:9[0-9]|1[0-9]{2})(?![0-9.%])",
        "温度[^，。0-9]{0,6}(?:9[0-9]|1[0-9]{2})(?![0-9.%])|(?<![0-9.])(?:9[0-9]|1[0-9]{2})\\s?度",
    ),
    "other-fault": _words(
        r"warnings?|ecc|errors?|xid|hccs|hccl|hang\w*|hung|stuck|slow\w*|lost|drop\w*|missing|crash\w*|fail\w*|timeouts?",
        "报错|错误|卡住|卡死|挂|慢|掉|丢|超时|失败|崩|降频",
    ),
    "covered": _words(
        r"support(?:ed|s)?|cover(?:ed|s)?|work(?:s)? with|can (?:you|it|gpudiag)|diagnose|analy[sz]e",
        "支持|能不能看|能分析|能看|能诊断|能用来|适配|兼容|能查|可以分析|可以看",
    ),
    "how-done": _words(r"how|what|why|where", "怎么|如何|咋|怎样|什么|哪|为什么|为啥"),
    # how many degrees hotter: a difference, and the temperature of neither
    "hotter-by": _words(
        r"[0-9]{1,2}\s?(?:°?c|degrees?|deg) (?:hotter|warmer|higher|above)(?: than)?",
        "(?:温度|热)[^，。0-9]{0,16}(?:比|较)[^，。0-9]{0,12}(?:高|热)(?:了|出|大概|约|近|差不多)?\\s?[0-9]{1,2}\\s?(?:度|°|℃|c)|比[^，。0-9]{1,10}热\\s?[0-9]{1,2}\\s?(?:度|°|℃)",
    ),
    "load-high": _words(
        r"load(?: average)?[^.,;]{0,12}[0-9]{2,5}|high load|load (?:is )?(?:very )?high",
        "(?:load|负载)[^，。0-9]{0,6}(?:[0-9]{2,5}|很高|飙|爆|特别高)",
    ),
    "cpu-idle": _words(
        r"cpus?[^.,;]{0,16}(?:idle|low|(?<![0-9.])[0-9]\s?%|1[0-9]\s?%)",
        "(?i:cpu)[^，。0-9]{0,10}(?:空闲|很低|不高|没怎么用|(?<![0-9.])1?[0-9]\\s?%)",
    ),
    "supply-lost": _words(
        r"psu ?[0-9]?[^.,;]{0,12}(?:lost|fail\w*|down|dead)|power supply[^.,;]{0,16}(?:lost|fail\w*|down|dead)|ac lost|lost (?:a |one )?(?:psu|power supply)",
        "(?i:psu)\\s?[0-9]?[^，。]{0,8}(?:(?i:lost|fail)|掉电|掉了|故障|坏|告警|丢)|电源[^，。]{0,6}(?:掉电|掉了|故障|坏|告警|丢)|(?:掉|丢|坏)了?[一1]?(?:路|个)电源",
    ),
    "held-back": _words(
        r"slow\w*|throttl\w*|clocks?|power brake|held (?:back|down)", "降频|变慢|很慢|掉速|频率|限功[率耗]|跑不快"
    ),
    "interrupted-times": _words(
        r"(?:interrupt\w*|crash\w*|restart\w*|fail\w*) [0-9]+ times|[0-9]+ (?:interruptions|crashes|restarts|failures)",
        "(?:中断|挂|断|故障|失败|重启)了?\\s?[0-9]{1,3}\\s?次",
    ),
    "asks-if-usual": _words(
        r"normal|usual|expected|typical|too many|a lot|much", "正常|算多|多吗|多不多|合理|常见|什么水平"
    ),
    "low-watts": _words(_NEVER, _NEVER),  # a draw that is no board's design power: `_below_its_board`
    # what is asked of it
    "zombie": _words(r"zombies?|defunct|kill -9", "僵尸|残留"),
    "why": _words(r"why|how come", "为什么|为啥|为何|怎么还|咋还"),
    "meaning": _words(r"means?|meaning|what (?:is|does)", "什么意思|啥意思|含义|是什么|是啥|说明"),
    "which": _words(r"which", "哪个|哪些|哪一个"),
    "who": _words(
        r"who(?:'s)?|whose|owners?|which (?:team|users?|jobs?|people|pods?|tenants?|groups?)",
        "谁|哪个(?:组|人|用户|任务|作业|团队|部门)|哪些(?:组|人|用户|任务|作业|团队|部门)|归属",
    ),
    "many-gpus": _words(
        r"(?:[0-9]{2,4}|our|all|the|these|so many)\s?(?:x\s?)?(?:gpus|cards|[abhlvt][0-9]{1,3}s)|cluster|fleet|half of (?:them|the)|quota",
        "集群|[0-9]{2,4}\\s?张|这些卡|[几多]张|全部的?卡|机房|配额",
    ),
    "tell": _words(
        r"how|tell|know|find out|determine|distinguish|decide|figure out|check|see|measure",
        "怎么|如何|怎样|咋|判断|区分|分辨|看出|知道|确定",
    ),
    "trust": _words(
        r"trust(?:ed|worthy)?|believe|rely|reliable|meaningful|l(?:ie|ies|ying)|mislead\w*|honest|accurate|reflect\w*",
        "可信|能信|相信|靠谱|可靠|[准骗]|参考价值|反映|没(?:有)?(?:意义|用处|参考)",
    ),
    "memory-bound": _words(r"(?:memory|bandwidth|dram|hbm)(?:[- ]bandwidth)?(?:[- ]?bound)?", "带宽|访存|显存"),
    "compute-bound": _words(r"comput(?:e|ing|ation)(?:[- ]?bound)?|math[- ]?bound|flops?", "算力|计算"),
    "bound": _words(r"bound|bottleneck(?:ed)?|limit(?:ed)?|limiting", "瓶颈|受限|卡在|限制"),
    "number": _words(r"[0-9]+(?:\.[0-9]+)?\s?(?:%|gb/s|w)|0?\.[0-9]+", _NEVER),
    "faster": _words(r"faster|speed|accelerat\w*|improv\w*|optimi[sz]\w*", "提速|加速|更?快|优化"),
    "waste": _words(r"wast\w*|normal|wrong|problem|fault|bad|bug|expected|okay|ok", "浪费|正常|问题|不对|异常"),
    "asks-if-wrong": _words(
        r"worr\w*|normal|usual|expected|problem|issue|wrong|bad|fine|ok|okay|matter\w*|care|concern\w*|alarm\w*|alert\w*|ignore|harm\w*|fix|rais\w*|improv\w*|increas\w*|worth|page (?:someone|anyone|me|us)|wast\w*|should (?:i|we) (?!interpret|read|understand)|do (?:i|we) (?:need|have)|need to|too low",
        "要不要|要紧|正常|问题|报警|告警|需要|管[吗么不]|不管|担心|影响|浪费|有没有事|没事|异常|该不该|提高|优化|算低|太低|处理",
    ),
    "take-back": _words(
        r"kill\w*|s?cancel\w*|evict\w*|preempt\w*|stop(?:ped)?|take (?:it|them|those|these|the gpus?)[^.,;]{0,12}?(?:back|away)|reclaim\w*|release\w*|free(?:d)?(?: up)?|cull\w*|shut (?:it|them)?\s?down|auto\w*|time ?out|end (?:it|them)|drain",
        "杀|停掉|取消|释放|收回|回收|踢|剔除|清理|自动|关掉|下掉|终止|强制",
    ),
    # what has answers of its own
    "cause": _words(
        r"upgrad\w*|updat\w*|driver|reboot\w*|migrat\w*|moved|switch(?:ed|ing)? to|chang(?:ed|ing) (?:the|to|our|from|batch|driver)|new (?:node|driver|kernel|image|version|container|cluster|data\w*)|after|when|replac\w*|xid\w*|error\w*|nccl|oom|hang\w*|hung|stuck|crash\w*",
        "升级|更新|换[了成到]|重启|重装|之后|以后|迁移|报错|挂|卡死|卡住|崩|驱动",
    ),
    "hardware": _words(
        r"(?:gpu|card|rank|node)\s?#?[0-9]+|nodes?|one (?:gpu|rank|card)|nfs|lustre|disk|storage|loader|dataloader|network|infiniband|ib|pcie|nvlink|clocks?|mhz|temperature|throttl\w*|[0-9]+\s?(?:w|mhz|ghz|c|gb/s|tflops|ms|s)|from [0-9.]+|now [0-9.]+|was [0-9.]+|vs",
        r"节点|[一单某]张?卡|某|磁盘|存储|网络|数据加载|降频|温度|时钟|频率|[0-9]\s?(?:瓦|度|秒|毫秒)|从\s?[0-9]|现在\s?[0-9]|降到|掉到",
    ),
}


def asked(said: str) -> Asked:
    """The advice whose marks a sentence has, of several the one with most; none where it has those of none."""
    if len(said) > _LONG:
        return Asked()
    has: dict[str, bool] = {}

    def is_told(mark: str) -> bool:
        if mark not in has:
            has[mark] = _OWN.get(mark, _MARKS[mark].search)(said) not in (None, False)
        return has[mark]

    fitting = [(len(t.has), a.id, t.reports) for a in advice().values() for t in a.told if _fits(t, is_told)]
    return Asked(*max(fitting)[1:]) if fitting else Asked()


def _fits(told: Told, has: Callable[[str], bool]) -> bool:
    return all(map(has, told.has)) and not any(map(has, told.without))


_WATTS = lazy(r"(?<![0-9.])([0-9]{2,4})(?:\.[0-9]+)?\s?(?:w|watts?|瓦)(?![a-z])", re.IGNORECASE)


def _below_its_board(said: str) -> bool:
    """Whether a draw is told that is not the design power of the model that is named, or of any where none is."""
    from assistant.intent.things import MODEL

    if (found := _WATTS.search(said)) is None:
        return False
    model = MODEL.search(said)
    specs = candidates(model[0].strip(" ,")) if model else all_specs()
    return not any(s.tdp_w and abs(float(found[1]) - s.tdp_w) <= _NEAR * s.tdp_w for s in specs)


_OWN: dict[str, Callable[[str], object]] = {"low-watts": _below_its_board}
MARKS = frozenset(_MARKS)
