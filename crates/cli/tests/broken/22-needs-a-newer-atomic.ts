// ATM712 2:30
export const minSDKVersion = "99.0.0";
