// ATM710 3:21
const parts = ["a", "b"];
export const name = parts.join("-");
