// ATM711 2:21
export const name = 42;
