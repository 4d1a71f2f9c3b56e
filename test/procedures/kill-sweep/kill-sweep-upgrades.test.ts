import { tellOfDeaths } from "./tell-of-deaths.ts";
import { UPGRADES } from "./upgrades.ts";

tellOfDeaths(UPGRADES);
