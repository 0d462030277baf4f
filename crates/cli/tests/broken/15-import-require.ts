// ATM708 2:1
import fs = require("fs");
export const a = fs;
