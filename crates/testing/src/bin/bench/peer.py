# LangGraph on the graphs of graphs.rs: CPU per step, in the best of a few runs.
import asyncio
import operator
import sys
import time
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send


class State(TypedDict, total=False):
    text: str
    n: int
    done: Annotated[int, operator.add]


def step(state):
    return {"n": state.get("n", 0) + 1}


def count(state):
    return {"done": 1}


def linear(steps):
    graph = StateGraph(State)
    for place in range(steps):
        graph.add_node(f"node-{place}", step)
    graph.add_edge(START, "node-0")
    for place in range(1, steps):
        graph.add_edge(f"node-{place - 1}", f"node-{place}")
    graph.add_edge(f"node-{steps - 1}", END)
    return graph, {}, steps


def cycle(steps):
    graph = StateGraph(State)
    graph.add_node("work", step)
    graph.add_edge(START, "work")
    graph.add_conditional_edges("work", lambda state: "work" if state["n"] < steps else END)
    return graph, {"text": "x" * 10_000}, steps


def fan(width, work=count):
    graph = StateGraph(State)
    graph.add_node("start", work)
    graph.add_edge(START, "start")
    for place in range(width):
        graph.add_node(f"node-{place}", work)
        graph.add_edge("start", f"node-{place}")
    return graph, {}, width + 1


def fan_and_join(width, work=count):
    graph, state, steps = fan(width, work)
    graph.add_node("join", work)
    graph.add_edge([f"node-{place}" for place in range(width)], "join")
    return graph, state, steps + 1


def each(width):
    graph = StateGraph(State)
    graph.add_node("work", count)
    graph.add_conditional_edges(START, lambda _: [Send("work", {"n": n}) for n in range(width)])
    return graph, {}, width


def measure(build, size, repeats):
    best = None
    for _ in range(repeats):
        graph, state, steps = build(size)
        graph = graph.compile()
        before = time.process_time()
        done = graph.invoke(state, {"recursion_limit": size + 10})
        took = time.process_time() - before
        counted = done.get("done") or done["n"]
        assert counted == steps, (counted, steps)
        best = took if best is None else min(best, took)
    return best * 1e6 / steps


def branches(width, repeats):
    async def wait(state):
        await asyncio.sleep(0.01)
        return {"done": 1}

    async def measured():
        times = []
        for _ in range(repeats):
            graph = StateGraph(State)
            for place in range(width):
                graph.add_node(f"node-{place}", wait)
                graph.add_edge(START, f"node-{place}")
            graph.add_node("join", count)
            graph.add_edge([f"node-{place}" for place in range(width)], "join")
            graph = graph.compile()
            before = time.perf_counter()
            done = await graph.ainvoke({})
            times.append((time.perf_counter() - before) * 1e3)
            assert done["done"] == width + 1, done
        return sorted(times)

    return asyncio.run(measured())


# A node that holds a graph and runs it in rounds has no counterpart. A branch is measured as a
# plain node, which is the cheapest form it can have there.
cases = {
    "linear": linear,
    "cycle, 10 KB state": cycle,
    "loop, 10 KB state": None,
    "fan by edges": fan,
    "fan by edges + list join": fan_and_join,
    "each": each,
    "parallel": fan,
}
repeats, width, *wanted = sys.argv[1:]
for case, size in zip(wanted[::2], wanted[1::2]):
    build = cases[case]
    print(case, measure(build, int(size), int(repeats)) if build else "-", sep="\t")
times = branches(int(width), 3 * int(repeats))
print("branches", times[0], times[len(times) // 2], sep="\t")
