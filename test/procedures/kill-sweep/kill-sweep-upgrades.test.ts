import { reportKills } from "./report-kills.ts";
import { UPGRADES } from "./upgrades.ts";

reportKills(UPGRADES);
