// ATM701 6:1
import { graph } from "atomic/workflows";
export default function createWorkflow() {
  if (true) {
    return graph();
