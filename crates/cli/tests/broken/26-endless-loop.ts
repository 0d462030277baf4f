// ATM714 4:27
export default function createWorkflow() {
  let n = 0;
  for (;;) n += Math.sqrt(n);
}
