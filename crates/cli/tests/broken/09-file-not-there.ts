// ATM704 2:22
import { help } from "./lib/helpers";
export default help;
