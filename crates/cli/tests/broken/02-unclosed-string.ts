// ATM701 2:28
export const description = "never ends;
