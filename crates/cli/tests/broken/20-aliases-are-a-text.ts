// ATM711 2:24
export const aliases = "one,two";
