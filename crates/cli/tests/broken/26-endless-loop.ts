// ATM714 2:1
export default function createWorkflow() {
  let n = 0;
  // Without a call in it, only the function is known.
  for (;;) n += 1;
}
