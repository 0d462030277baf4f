// ATM708 3:1
const workflow = {};
export = workflow;
