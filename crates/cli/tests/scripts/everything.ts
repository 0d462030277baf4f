// A plain async workflow with everything in it that can go wrong when it is repeated: races,
// failures that are caught, chance, time, and calls side by side.
import { defineWorkflow } from "atomic/workflows";

const logged = (name: string) => `echo "$ATOMIC_STEP" >> "$LEDGER"; ${name}`;

export default defineWorkflow({ name: "everything", workflows: ["inner"] }).run(async (ctx) => {
  const [chance, id, began] = [Math.random(), crypto.randomUUID(), Date.now()];
  const remembered = JSON.stringify([chance, id, began]);
  await ctx.writeFile("chance.json", remembered);

  const told: string[] = [];
  try {
    await ctx.shell(logged("exit 3"), { check: true });
  } catch (error: any) {
    told.push(`caught ${error.code}`);
  }
  try {
    await ctx.readFile("nowhere.txt");
  } catch {
    told.push("caught a file");
  }
  const both = await ctx.parallel({
    left: (c) => c.shell(logged("echo left")),
    right: async (c) => (await c.agent("worker", "Do right")) + "!",
  });
  told.push(both.left.stdout.trim(), both.right);
  const first = await ctx.parallel([(c) => c.shell(logged("echo quick")), (c) => c.shell(logged("exec sleep 1000"))], { strategy: "race" });
  told.push((first as any).stdout.trim());
  const any = await ctx.parallel([(c) => c.shell(logged("exit 1"), { check: true }), (c) => c.shell(logged("echo any"))], { strategy: "any" });
  told.push((any as any).stdout.trim());
  const all = await ctx.map(["x", "y", "z"], async (item, c) => (await c.shell(logged(`echo ${item}`))).stdout.trim(), { limit: 2 });
  told.push(all.join(""));
  // The order in which these come back is decided by the run, and must be the same again.
  const order: string[] = [];
  await Promise.all(["p", "q", "r"].map(async (name) => {
    await ctx.shell(logged(`echo ${name}`), { key: name });
    order.push(name);
  }));
  await ctx.writeFile("order.txt", order.join(""));
  await ctx.sleep(5);
  const answer = await ctx.ask("Well?", { options: ["No", "Yes (Recommended)"] });
  told.push(answer);
  await ctx.workflow("inner", "from outside");
  ctx.log("nearly done");

  if ((await ctx.readFile("chance.json")) !== remembered) throw new Error("chance or time has changed");
  if ((await ctx.readFile("order.txt")) !== order.join("")) throw new Error("the order has changed");
  if (Date.now() < began) throw new Error("time went backwards");
  await ctx.writeFile("report.txt", told.join("\n"));
  return told;
});
