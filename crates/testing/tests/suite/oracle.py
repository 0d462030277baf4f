# Runs the graphs that come in on LangGraph; says what was visited when, and what came of it.
# What the nodes do is written twice, here and in oracle_graphs.rs: the same, word for word.
import json
import sys
from collections import defaultdict
from typing import Annotated, Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph

REDUCERS = {
    "concat": lambda old, new: old + new,
    "sum": lambda old, new: old + new,
    "max": lambda old, new: max(old, new),
    "min": lambda old, new: min(old, new),
    "merge": lambda old, new: {**old, **new},
    "or": lambda old, new: old or new,
    "and": lambda old, new: old and new,
}

PRIME = 1_000_003


def measure(value):
    if isinstance(value, bool):
        return 2 if value else 1
    if isinstance(value, (int, float)):
        return int(value * 4) % PRIME
    if isinstance(value, str):
        return fold(value.encode())
    if isinstance(value, list):
        return fold(map(measure, value))
    return sum(measure(key) * (measure(held) + 7) for key, held in value.items()) % PRIME


def fold(numbers):
    result = 17
    for number in numbers:
        result = (result * 31 + number) % PRIME
    return result


def number(saw, old):
    new = saw % 9 + 1 + (0.25 if saw % 3 == 0 else 0)
    return new + 1 if new == old else new


def signed(saw):
    return saw % 1000 - 500 + (0.5 if saw % 5 == 0 else 0)


WRITES = {
    "count": lambda node, saw, old: (old or 0) + 1,
    "route": lambda node, saw, old: saw % 4,
    "saw": lambda node, saw, old: saw,
    "entry": lambda node, saw, old: [node, saw],
    "number": lambda node, saw, old: number(saw, old),
    "signed": lambda node, saw, old: signed(saw),
    "facts": lambda node, saw, old: {node: saw, f"fact-{saw % 3}": node},
    "flag": lambda node, saw, old: saw % 3 == 0,
}


def work(node, trace):
    def act(state, config: RunnableConfig):
        trace[config["metadata"]["langgraph_step"]].append(node["id"])
        saw = measure(state)
        writes = node["writes"].items()
        return {key: WRITES[how](node["id"], saw, state.get(key)) for key, how in writes}

    return act


def holds(when, state):
    if when == "otherwise":
        return True
    [(test, what)] = when.items()
    value = state.get(what["key"])
    return value == what["value"] if test == "equals" else value < what["limit"]


def choice(edges):
    def choose(state):
        return next((edge["to"] for edge in edges if holds(edge["when"], state)), END)

    return choose


def build(sample, trace):
    reducers = sample["reducers"].items()
    kinds = {k: Any if r == "replace" else Annotated[Any, REDUCERS[r]] for k, r in reducers}
    graph = StateGraph(TypedDict("State", kinds, total=False))
    for node in sample["nodes"]:
        graph.add_node(node["id"], work(node, trace))
    graph.add_edge(START, sample["start"])
    conditional = defaultdict(list)
    for edge in sample["edges"]:
        if edge["when"] is not None:
            conditional[edge["from"][0]].append(edge)
        elif len(edge["from"]) == 1:
            graph.add_edge(edge["from"][0], edge["to"])
        else:
            graph.add_edge(edge["from"], edge["to"])
    for node, edges in conditional.items():
        graph.add_conditional_edges(node, choice(edges))
    return graph.compile()


def play(sample):
    trace = defaultdict(list)
    try:
        state = build(sample, trace).invoke(sample["state"], {"recursion_limit": 500})
    except Exception as error:
        state = {"error": repr(error)}
    return {"state": state, "supersteps": [sorted(trace[step]) for step in sorted(trace)]}


json.dump([play(sample) for sample in json.load(sys.stdin)], sys.stdout)
