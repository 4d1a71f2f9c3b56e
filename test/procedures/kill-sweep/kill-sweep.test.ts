import { SWEPT } from "./procedures.ts";
import { tellOfDeaths } from "./tell-of-deaths.ts";

tellOfDeaths(SWEPT);
