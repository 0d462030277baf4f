// ATM703 2:19
import { z } from "zod";
export const schema = z;
