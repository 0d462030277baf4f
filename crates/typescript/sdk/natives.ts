// What the modules of the SDK may use of Rust: `import { natives } from "atomic:natives"`. Files of
// users cannot import it.
import { call, cancel, log, now, position, request, scope, show } from "./boot.ts";

export const natives = { call, cancel, log, now, position, request, scope, show };
export { call, cancel, log, now, position, request, scope, show };
export type { At, Scope } from "./boot.ts";
