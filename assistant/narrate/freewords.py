"""Words that say nothing of their own: all else in a sentence must stand in the statement that it rests on.

Left out on purpose, because each of them alone can turn a true sentence into a false one: words of number and degree (all, only,
too, much, fewer), of time and return (again, back, before, during, over), of use and health, and every name of a thing.
"""

# ruff: noqa: SIM905
from __future__ import annotations

GLUE = frozenset(
    """
a an the this that these those it its itself they them their theirs themselves he him his she her we us our you your who whom whose which
what where how and or but nor yet so if then than as at by for from in into of on onto off out to upon with within about across
along among around between is are was were be been being am has have had having do does did done can could will would shall may might
also there here because therefore thus hence consequently accordingly due via through toward towards per like one of
however moreover furthermore while whereas although though since when whenever whether such up well just same other another some
now still already
""".split()
)
# Telling, seeing and being; how often and when stand in placeholders.
TELLING = frozenset(
    """
report show record log say tell note see find observe list mention indicate describe detect notice print register state
read reading seen saw told said found shown written write appear look seem measure measured
finding observation evidence entry message line record reading value time place point case kind sort thing fact event incident
report diagnosis problem issue trouble situation symptom consequence cause reason root effect result fallout origin source explain account
lead trigger victim happen occur mean follow come came stem
get got give gave given exist sit stand stay remain belong concern contain consist relate regard relevant
detail information result outcome total together respectively currently present presently
at-the-time therefore namely overall instead actually simply indeed clearly notably specifically
about around currently meanwhile meantime
experience
certainty code number name called known
view picture section part respect connection connected related linked associated attributed attribute owing thanks
probably possibly likely perhaps maybe presumably suggest suspected suspect apparently potentially possible probable
almost certain why take taken begin began failure under make made include including care culprit behind afterwards else longer count counted
please should must need needs needed required require recommended recommend advised advise ought necessary let lets
help helps action step remedy fix task next
shows explains
""".split()
)
FREE = GLUE | TELLING
# Where the sentence says that it tells of a condition, or of what comes later.
CONDITIONS = frozenset("until once after before when if unless whenever till".split())
# The things that a finding is about; each stands for its row.
ENTITIES = frozenset("gpu node process job rank".split())
# They add to a statement, and alone make none.
WEAK = frozenset(
    "only again back first last more less all every each one when after before until both any often usual usually sometimes always".split()
)
