// ATM702 3:7
const a = 1;
const a = 2;
