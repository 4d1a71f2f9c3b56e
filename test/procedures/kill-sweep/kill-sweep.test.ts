import { SWEPT } from "./procedures.ts";
import { reportKills } from "./report-kills.ts";

reportKills(SWEPT);
