// Loaded by OpenCode. Before every use of a tool, and for the environment of every shell, it asks
// the Atomic that started the program; without an answer nothing is used.
import { connect } from "node:net";

const ask = (question) =>
  new Promise((resolve, reject) => {
    const gate = connect(process.env.ATOMIC_GATE);
    let answer = "";
    gate.on("data", (piece) => (answer += piece));
    gate.on("end", () => {
      try {
        resolve(JSON.parse(answer));
      } catch {
        reject(new Error("atomic did not answer"));
      }
    });
    gate.on("error", reject);
    // Its end is not closed: that would close the other end as well.
    gate.write(JSON.stringify(question) + "\n");
  });

export const Atomic = async ({ directory }) => {
  await ask({ session: "", hello: directory });
  return {
    "tool.execute.before": async ({ tool, sessionID }, { args }) => {
      const { refusal } = await ask({ session: sessionID, tool, args });
      if (refusal) throw new Error(refusal);
    },
    "shell.env": async ({ sessionID }, { env }) => {
      Object.assign(env, (await ask({ session: sessionID ?? "" })).env);
    },
  };
};
