// An editor for tests: it plays a scene against an agent, with the client of the protocol's own
// TypeScript SDK, and prints what it hears as lines of JSON.
//
//   node client.mjs '{"program": …, "args": […], "cwd": …, "forms": true, "answers": […], "steps": […]}'
//
// Steps: {"new": {…}}, {"load": id}, {"resume": id}, {"list": {…}}, {"close": true},
// {"prompt": text or blocks, "cancelAt": text, "then": {"at": text, "prompt": text, "write": path}}:
// another prompt is sent meanwhile, if there is one, and when it is answered a file is written.
// Answers are given one after the other, to forms and to questions for permission: the response to
// a form, or the name of an option; null is no answer.
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const scene = JSON.parse(process.argv[2]);
const tell = (what, value) => console.log(JSON.stringify({ what, value }));
const failed = (error) => ({ code: error.code, message: error.message, data: error.data });

const child = spawn(scene.program, scene.args, { stdio: ["pipe", "pipe", "inherit"], cwd: scene.cwd });
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
const answers = [...(scene.answers ?? [])];
let watch = () => {};

const app = acp
  .client({ name: "scene" })
  .onNotification(acp.methods.client.session.update, ({ params }) => {
    tell("update", params);
    watch(JSON.stringify(params.update));
  })
  .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
    tell("permission", params);
    const name = answers.shift();
    const option = params.options.find((option) => option.name === name);
    return { outcome: option ? { outcome: "selected", optionId: option.optionId } : { outcome: "cancelled" } };
  })
  .onRequest(acp.methods.client.elicitation.create, ({ params }) => {
    tell("form", params);
    return answers.shift() ?? { action: "cancel" };
  });

const { session } = acp.methods.agent;

await app.connectWith(stream, async (ctx) => {
  const clientCapabilities = { fs: { readTextFile: false, writeTextFile: false }, terminal: false };
  if (scene.forms) clientCapabilities.elicitation = { form: {} };
  const initialized = await ctx.request(acp.methods.agent.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientInfo: { name: "scene", version: "1" },
    clientCapabilities,
  });
  tell("initialized", initialized);
  const where = { cwd: scene.cwd, mcpServers: [] };
  let sessionId;
  const ask = async (what, method, params) => {
    try {
      const value = await ctx.request(method, params);
      tell(what, value);
      return value;
    } catch (error) {
      tell("failed", failed(error));
      return {};
    }
  };
  const send = (prompt) =>
    ask("answered", session.prompt, {
      sessionId,
      prompt: typeof prompt === "string" ? [{ type: "text", text: prompt }] : prompt,
    });
  for (const step of scene.steps) {
    if (step.new) sessionId = (await ask("opened", session.new, { ...where, ...step.new })).sessionId;
    if (step.load) await ask("loaded", session.load, { ...where, sessionId: (sessionId = step.load) });
    if (step.resume) await ask("resumed", session.resume, { ...where, sessionId: (sessionId = step.resume) });
    if (step.list) await ask("listed", session.list, step.list);
    if (step.close) await ask("closed", session.close, { sessionId });
    if (!step.prompt) continue;
    const others = [];
    watch = (text) => {
      if (step.cancelAt && text.includes(step.cancelAt)) {
        delete step.cancelAt;
        ctx.notify(session.cancel, { sessionId });
      }
      if (step.then && text.includes(step.then.at)) {
        const { prompt, write } = step.then;
        const sent = prompt ? send(prompt) : Promise.resolve();
        others.push(sent.then(() => writeFileSync(write, "")));
        delete step.then;
      }
    };
    await send(step.prompt);
    await Promise.all(others);
  }
});
const ended = new Promise((done) => child.once("exit", done));
child.stdin.end();
tell("ended", await ended);
process.exit(0);
