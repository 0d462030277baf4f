// ATM714 4:37
export default function createWorkflow() {
  const all: string[] = [];
  for (;;) all.push("x".repeat(1 << 20) + all.length);
}
