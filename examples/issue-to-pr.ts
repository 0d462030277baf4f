// From an issue to a pull request: research, a plan, the work, tests until they pass, and a
// question before anything leaves the machine.
//
//   atomic run issue-to-pr "Dates in the report are off by one"
import { agentNode, askUserNode, graph, skillNode, subagentNode, toolNode } from "@atomic/workflows";
import type { WorkflowState } from "atomic/types";

export const name = "issue-to-pr";
export const description = "From an issue to a pull request, with tests that pass";
export const argumentHint = "<what the issue says>";
export const nodeDescriptions = {
  locate: "Looking for the place…",
  plan: "Planning…",
  work: "Working…",
  check: "Running the tests…",
  pr: "Opening a pull request…",
};

interface State extends WorkflowState {
  tests: { passed: boolean; output: string };
  answer?: string;
}

export function createState(params: { prompt: string; sessionId: string }): State {
  return { executionId: params.sessionId, prompt: params.prompt, outputs: {}, tests: { passed: false, output: "" } };
}

const work = agentNode<State>("work", {
  agent: "worker",
  prompt: (s) => (s.tests.output ? `The tests fail. Mend what you did:\n${s.tests.output}` : `Carry out this plan:\n${s.outputs["plan"]}`),
});

const check = toolNode<State>("check", {
  timeoutMs: 600_000,
  execute: async (_, ctx) => {
    const command = (await ctx.exists("Cargo.toml")) ? "cargo test" : "sh test.sh";
    const { code, stdout, stderr } = await ctx.shell(command);
    return { tests: { passed: code === 0, output: (stdout + stderr).slice(-4000) } };
  },
});

export default function createWorkflow(config?: { rounds?: number }) {
  return graph<State>()
    .start(subagentNode("locate", { agent: "codebase-locator", task: "Find the files that this is about: {prompt}" }))
    .then(subagentNode("plan", { agent: "planner", task: (s) => `Plan a fix for: ${s.prompt}\n\nFiles:\n${s.outputs["locate"]}` }))
    .loop(work, check, { until: (s) => s.tests.passed, maxIterations: config?.rounds ?? 3 })
    .if((s) => s.tests.passed)
    .then(askUserNode("ready", { question: "The tests pass. Open a pull request?", header: "Publish", options: ["Yes (Recommended)", "No"], outputMapper: (answer) => ({ answer }) }))
    .if((s) => s.answer?.startsWith("Yes") ?? false)
    .then(skillNode("pr", { skill: "create-gh-pr", args: "{prompt}" }))
    .endif()
    .endif()
    .end()
    .compile();
}
