// ATM711 2:29
export const stateVersion = "2";
