// ATM722 2:1
import { defineWorkflow } from "atomic/workflows";

const graphConfig = defineWorkflow({ name: "forgotten" }).run(async () => {});
