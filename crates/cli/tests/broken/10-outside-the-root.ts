// ATM705 2:21
import secrets from "../../secrets.json";
export default secrets;
