export const check = () => {
  const controller = new AbortController();
  const heard: string[] = [];
  controller.signal.addEventListener("abort", () => heard.push("one"), { once: true });
  controller.signal.onabort = () => heard.push("on");
  const any = AbortSignal.any([controller.signal]);
  controller.abort();
  const original = { date: new Date(5), map: new Map([["a", [1]]]) };
  const copy = structuredClone(original);
  const bytes = new TextEncoder().encode("aä€😀");
  const uuid = crypto.randomUUID();
  let thrown = "";
  try { controller.signal.throwIfAborted(); } catch (e: any) { thrown = e.name; }
  return {
    heard, any: any.aborted, thrown,
    copy: [copy.date.getTime(), copy.map.get("a"), copy.map !== original.map],
    bytes: [...bytes], text: new TextDecoder().decode(bytes),
    broken: new TextDecoder().decode(new Uint8Array([97, 0xff, 0xe2, 0x82])),
    uuid: /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(uuid),
    unlike: uuid !== crypto.randomUUID(),
    date: [new Date() instanceof Date, Date.now() > 1.6e12, typeof Date(), new Date(0).toISOString(),
      Object.prototype.toString.call(new Date()), class extends Date {}.name === ""],
    hidden: ["__raw", "process", "require", "Bun", "fetch"].filter((name) => name in globalThis),
    micro: typeof queueMicrotask, base64: atob(btoa("x")),
  };
};
