// Writes something and has it reviewed until the reviewer has nothing left to say. The reviewer
// answers with data that fits a schema, so nobody has to look for words in a text.
//
//   atomic run review-cycle "A page about our release process"
import { agentNode, clearContextNode, Reducers, annotation, reviewCycle, subagentNode } from "atomic/workflows";
import type { WorkflowState } from "atomic/types";

export const name = "review-cycle";
export const description = "Writes, reviews and mends until the reviewer is content";

interface State extends WorkflowState {
  findings: string[];
  rounds: number;
}

interface Review {
  findings: string[];
}

const review = {
  type: "object",
  properties: { findings: { type: "array", items: { type: "string" } } },
  required: ["findings"],
};

export default function createWorkflow() {
  return reviewCycle<State>({
    work: [
      clearContextNode("fresh"),
      agentNode("write", {
        agent: "worker",
        description: "Writing…",
        prompt: (s) => (s.findings.length ? `Mend this in page.md:\n- ${s.findings.join("\n- ")}` : `Write page.md: ${s.prompt}`),
      }),
    ],
    review: subagentNode("review", {
      agent: "reviewer",
      description: "Reviewing…",
      task: (s) => `Review page.md, round ${s.rounds + 1}. It is to be: ${s.prompt}`,
      schema: review,
      outputMapper: (found: Review) => ({ findings: found.findings, rounds: 1 }),
    }),
    until: (s) => s.findings.length === 0,
    maxIterations: 4,
  }).compile({
    stateAnnotations: { findings: annotation<string[]>([]), rounds: annotation(0, Reducers.sum) },
  });
}
