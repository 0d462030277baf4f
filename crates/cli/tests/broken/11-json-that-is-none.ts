// ATM706 broken.json:1:9
import config from "./lib/broken.json";
export default config;
