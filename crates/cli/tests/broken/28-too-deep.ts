// ATM714 3:10
export default function createWorkflow(): unknown {
  return createWorkflow();
}
