// ATM702 3:10
export default function createWorkflow() {
  return await Promise.resolve(1);
}
