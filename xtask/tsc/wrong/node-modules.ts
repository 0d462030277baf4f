import { readFileSync } from "node:fs"; //! TS2307
import lodash from "lodash"; //! TS2307

export const text = readFileSync("x", "utf8") + String(lodash);
