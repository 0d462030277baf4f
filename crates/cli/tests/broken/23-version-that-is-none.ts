// ATM712 2:30
export const minSDKVersion = "soon";
