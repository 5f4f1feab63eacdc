"""Runbooks as something that is walked: which step comes next, what its conditions say, and the walk on paper.

* `engine`: pure; from the marks of the steps to where the walk stands, and from what is known to what happens there.
* `judging`: conditions of runbooks through the parser and the three-valued logic of the rules.
* `dry`: a walk against facts, of which nothing runs.
"""
