// ATM703 2:23
import { graph } from "atomic/workflow";
export default () => graph();
