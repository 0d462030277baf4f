// ATM715 2:16
export default "a workflow";
