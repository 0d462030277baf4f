# LangGraph on the graphs of memory.rs: CPU per step, in the best of a few runs.
import sys
import time
from typing import TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict, total=False):
    text: str
    n: int


def step(state):
    return {"n": state.get("n", 0) + 1}


def linear(steps):
    graph = StateGraph(State)
    for place in range(steps):
        graph.add_node(f"node-{place}", step)
    graph.add_edge(START, "node-0")
    for place in range(1, steps):
        graph.add_edge(f"node-{place - 1}", f"node-{place}")
    graph.add_edge(f"node-{steps - 1}", END)
    return graph.compile(), {}


def cycle(steps):
    graph = StateGraph(State)
    graph.add_node("work", step)
    graph.add_edge(START, "work")
    graph.add_conditional_edges("work", lambda state: "work" if state["n"] < steps else END)
    return graph.compile(), {"text": "x" * 10_000}


def measure(build, steps, repeats):
    best = None
    for _ in range(repeats):
        graph, state = build(steps)
        before = time.process_time()
        done = graph.invoke(state, {"recursion_limit": steps + 10})
        took = time.process_time() - before
        assert done["n"] == steps, done["n"]
        best = took if best is None else min(best, took)
    return best * 1e6 / steps


linear_steps, cycle_steps, repeats = map(int, sys.argv[1:])
print("linear", linear_steps, measure(linear, linear_steps, repeats))
print("cycle", cycle_steps, measure(cycle, cycle_steps, repeats))
