// Loaded by OpenCode. Before every use of a tool, and for the environment of every shell, it asks
// the Atomic that started the program; without an answer nothing is used. The plugin also puts the
// user's providers in place of those that the program has merged from the user's and the project's files.
import { readFileSync } from "node:fs";
import { connect } from "node:net";

const users = JSON.parse(readFileSync(new URL("providers.json", import.meta.url), "utf8"));

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

// A project must not choose where prompts and keys are sent. Only where the program has fetched
// settings from a server of the user's are providers kept that no file of the user's has.
const keepUsersProviders = (config) => {
  const fetched = Object.entries(config.provider ?? {});
  const kept = fetched.filter(([id]) => users.foreign && !users.foreign.includes(id));
  config.provider = { ...Object.fromEntries(kept), ...users.provider };
  for (const [key, list] of [["enabled_providers", users.enabled], ["disabled_providers", users.disabled]]) {
    if (list) config[key] = list;
    else delete config[key];
  }
};

export const Atomic = async ({ directory }) => ({
  // Atomic sends nothing to a folder until it was greeted from there.
  config: async (config) => {
    keepUsersProviders(config);
    await ask({ session: "", hello: directory });
  },
  "tool.execute.before": async ({ tool, sessionID }, { args }) => {
    const { refusal } = await ask({ session: sessionID, tool, args });
    if (refusal) throw new Error(refusal);
  },
  "shell.env": async ({ sessionID }, { env }) => {
    Object.assign(env, (await ask({ session: sessionID ?? "" })).env);
  },
});
